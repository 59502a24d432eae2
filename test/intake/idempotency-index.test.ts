import { describe, expect, test } from 'vitest';
import { IdempotencyIndex, type RequestIdentity } from '../../src/intake/idempotency-index.ts';

const KIB = 1024;
const openIndex = (maxBytes: number) =>
  new IdempotencyIndex({ maxBytes, timer: { now: () => 0 }, clock: () => 0n });
const identity = (n: number): RequestIdentity => ({
  key: String(n).padStart(32, '0'),
  digest: 'd'.repeat(64),
  forgetOnceDelivered: false,
});
const resultWithErrors = (message: string) => ({
  accepted: 1,
  rejected: 20,
  errors: Array.from({ length: 20 }, (_, index) => ({ index, code: 'no_project' as const, message })),
});
const add = async (index: IdempotencyIndex, n: number, message: string) =>
  index.complete(await index.claim(identity(n), 0), resultWithErrors(message), 1);
const isKnown = async (index: IdempotencyIndex, n: number) => {
  const entry = await index.claim(identity(n), 0);
  const { result } = entry;
  if (result === undefined) index.remove(entry);
  return result !== undefined;
};

describe('the idempotency index', () => {
  test('keeps the counts and the first error of a result', async () => {
    const { result } = await add(openIndex(64 * KIB), 1, 'message');
    expect(result).toEqual({
      accepted: 1,
      rejected: 20,
      errors: [{ index: 0, code: 'no_project', message: 'message' }],
    });
  });

  test('forgets the oldest requests if it needs more memory than allowed', async () => {
    const index = openIndex(64 * KIB);
    for (let n = 0; n < 1_000; n++) await add(index, n, 'x'.repeat(500));
    expect(index.bytes).toBeLessThanOrEqual(64 * KIB);
    expect(index.bytes).toBeGreaterThan(58 * KIB);
    expect([await isKnown(index, 0), await isKnown(index, 999)]).toEqual([false, true]);
    for (let n = 0; n < 1_000; n++) await add(index, n, 'x'.repeat(100 * KIB));
    expect(index.bytes).toBe(0);
  });
});
