import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type RequestTarget, ValidatedRequests } from '../../src/endpoint/validated-requests.ts';

const call = (changes: Partial<RequestTarget> = {}): RequestTarget => ({
  target: '/api/endpoints/query/usage.api-counts?project=abc',
  ...changes,
});
const checked = (key: string) => ({ values: {}, key, pinnedKey: `pinned ${key}` });

describe('what the rules made of a call', () => {
  test('is found for the very same call alone', () => {
    const calls = new ValidatedRequests();
    calls.set(call(), checked('k'));
    expect(calls.get(call())?.key).toBe('k');
    const others: Partial<RequestTarget>[] = [
      { target: '/api/endpoints/query/usage.api-counts?project=ab' },
      { target: '/api/endpoints/query/usage.api-counts?project=abc&' },
      { target: '/api/endpoints/query/usage.api-counts?PROJECT=abc' },
      { target: '/api/endpoints/query/functions.invocation-stats?project=abc' },
      { maxTier: 'FREE' },
    ];
    for (const changes of others) expect(calls.get(call(changes))).toBeUndefined();
  });

  test('gives way to what another tier makes of the same text', () => {
    const calls = new ValidatedRequests();
    calls.set(call({ maxTier: 'FREE' }), checked('free'));
    calls.set(call({ maxTier: 'PRO' }), checked('pro'));
    expect(calls.get(call({ maxTier: 'FREE' }))).toBeUndefined();
    expect(calls.get(call({ maxTier: 'PRO' }))?.key).toBe('pro');
  });

  test('never takes more bytes than allowed, whatever is asked; the newest stay', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 2_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(lengths, all => {
        const calls = new ValidatedRequests(30_000);
        all.forEach((length, index) => {
          const asked = call({ target: `${index}&${'x'.repeat(length)}` });
          calls.set(asked, checked(String(index)));
          expect(calls.bytes).toBeLessThanOrEqual(30_000);
          expect(calls.get(asked)?.key).toBe(String(index));
        });
      }),
    );
  });

  test('counts a text once, however often it is kept', () => {
    const calls = new ValidatedRequests();
    calls.set(call(), checked('a'));
    const { bytes } = calls;
    calls.set(call({ maxTier: 'PRO' }), checked('b'));
    calls.set(call(), checked('a'));
    expect(calls.bytes).toBe(bytes);
  });

  test('that is too large for the room is not kept, and leaves nothing behind', () => {
    const calls = new ValidatedRequests(500);
    calls.set(call(), checked('k'));
    expect(calls.get(call())).toBeUndefined();
    expect(calls.bytes).toBe(0);
  });
});
