import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CheckedCalls, type UncheckedCall } from '../../src/endpoint/checked-calls.ts';

const call = (changes: Partial<UncheckedCall> = {}): UncheckedCall => ({
  text: '/api/endpoints/query/usage.api-counts?project=abc',
  ...changes,
});
const checked = (key: string) => ({ values: {}, key, pinnedKey: `pinned ${key}` });

describe('what the rules made of a call', () => {
  test('is found for the very same call alone', () => {
    const calls = new CheckedCalls();
    calls.keep(call(), checked('k'));
    expect(calls.find(call())?.key).toBe('k');
    const others: Partial<UncheckedCall>[] = [
      { text: '/api/endpoints/query/usage.api-counts?project=ab' },
      { text: '/api/endpoints/query/usage.api-counts?project=abc&' },
      { text: '/api/endpoints/query/usage.api-counts?PROJECT=abc' },
      { text: '/api/endpoints/query/functions.invocation-stats?project=abc' },
      { highestTier: 'FREE' },
    ];
    for (const changes of others) expect(calls.find(call(changes))).toBeUndefined();
  });

  test('gives way to what another tier makes of the same text', () => {
    const calls = new CheckedCalls();
    calls.keep(call({ highestTier: 'FREE' }), checked('free'));
    calls.keep(call({ highestTier: 'PRO' }), checked('pro'));
    expect(calls.find(call({ highestTier: 'FREE' }))).toBeUndefined();
    expect(calls.find(call({ highestTier: 'PRO' }))?.key).toBe('pro');
  });

  test('never takes more bytes than allowed, whatever is asked; the newest stay', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 2_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(lengths, all => {
        const calls = new CheckedCalls(30_000);
        all.forEach((length, index) => {
          const asked = call({ text: `${index}&${'x'.repeat(length)}` });
          calls.keep(asked, checked(String(index)));
          expect(calls.bytes).toBeLessThanOrEqual(30_000);
          expect(calls.find(asked)?.key).toBe(String(index));
        });
      }),
    );
  });

  test('counts a text once, however often it is kept', () => {
    const calls = new CheckedCalls();
    calls.keep(call(), checked('a'));
    const { bytes } = calls;
    calls.keep(call({ highestTier: 'PRO' }), checked('b'));
    calls.keep(call(), checked('a'));
    expect(calls.bytes).toBe(bytes);
  });

  test('that is too large for the room is not kept, and leaves nothing behind', () => {
    const calls = new CheckedCalls(500);
    calls.keep(call(), checked('k'));
    expect(calls.find(call())).toBeUndefined();
    expect(calls.bytes).toBe(0);
  });
});
