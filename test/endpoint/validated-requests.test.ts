import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ValidatedRequests, type ValidationKey } from '../../src/endpoint/validated-requests.ts';

const request = (changes: Partial<ValidationKey> = {}): ValidationKey => ({
  target: '/api/endpoints/query/usage.api-counts?project=abc',
  ...changes,
});
const validated = (key: string) => ({ values: {}, key, pinnedKey: `pinned ${key}` });

describe('the memoization of validated requests', () => {
  test('a request is found only by the same target and maximum tier', () => {
    const requests = new ValidatedRequests();
    requests.set(request(), validated('k'));
    expect(requests.get(request())?.key).toBe('k');
    const others: Partial<ValidationKey>[] = [
      { target: '/api/endpoints/query/usage.api-counts?project=ab' },
      { target: '/api/endpoints/query/usage.api-counts?project=abc&' },
      { target: '/api/endpoints/query/usage.api-counts?PROJECT=abc' },
      { target: '/api/endpoints/query/functions.invocation-stats?project=abc' },
      { maxTier: 'FREE' },
    ];
    for (const changes of others) expect(requests.get(request(changes))).toBeUndefined();
  });

  test('a request with another maximum tier replaces the one with the same target', () => {
    const requests = new ValidatedRequests();
    requests.set(request({ maxTier: 'FREE' }), validated('free'));
    requests.set(request({ maxTier: 'PRO' }), validated('pro'));
    expect(requests.get(request({ maxTier: 'FREE' }))).toBeUndefined();
    expect(requests.get(request({ maxTier: 'PRO' }))?.key).toBe('pro');
  });

  test('the size never exceeds the limit, and the newest request is always kept', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 2_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(lengths, all => {
        const requests = new ValidatedRequests(30_000);
        all.forEach((length, index) => {
          const current = request({ target: `${index}&${'x'.repeat(length)}` });
          requests.set(current, validated(String(index)));
          expect(requests.bytes).toBeLessThanOrEqual(30_000);
          expect(requests.get(current)?.key).toBe(String(index));
        });
      }),
    );
  });

  test('a target that is added again is counted once', () => {
    const requests = new ValidatedRequests();
    requests.set(request(), validated('a'));
    const { bytes } = requests;
    requests.set(request({ maxTier: 'PRO' }), validated('b'));
    requests.set(request(), validated('a'));
    expect(requests.bytes).toBe(bytes);
  });

  test('a request that is larger than the limit is not kept', () => {
    const requests = new ValidatedRequests(500);
    requests.set(request(), validated('k'));
    expect(requests.get(request())).toBeUndefined();
    expect(requests.bytes).toBe(0);
  });
});
