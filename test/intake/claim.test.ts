import { describe, expect, test } from 'vitest';
import { Idempotency } from '../../src/intake/idempotency.ts';
import type { ParsedBody } from '../../src/intake/parse-body.ts';

const KIB = 1024;
const create = (maxBytes: number) =>
  new Idempotency({ directory: '', maxBytes, timer: { now: () => 0 }, clock: () => 0n });
const claim = (idempotency: Idempotency, n: number, message: string, forgetOnceDelivered = false) => {
  const errors = Array.from({ length: 20 }, (_, index) => ({ index, code: 'no_project' as const, message }));
  const batch = { accepted: 1, rejectedByCode: { no_project: 20 }, errors, quarantineLines: '' };
  const body: ParsedBody = {
    batches: [{ ...batch, kind: 'edge', lines: Buffer.alloc(0) }],
    digest: String(n),
    allHaveIdentity: !forgetOnceDelivered,
  };
  return idempotency.claim({ sender: 's', kind: 'edge' }, body, 0);
};
const add = async (idempotency: Idempotency, n: number, message: string) => {
  const claimed = await claim(idempotency, n, message);
  claimed.stored(1);
  claimed.end(true);
};
const isKnown = async (idempotency: Idempotency, n: number) => {
  const claimed = await claim(idempotency, n, '');
  claimed.end(false);
  return claimed.batches[0]?.isRepeat;
};

describe('remembered requests', () => {
  test('a repeat gets the counts and the first error of the result', async () => {
    const idempotency = create(64 * KIB);
    await add(idempotency, 1, 'message');
    const errors = [{ index: 0, code: 'no_project', message: 'message' }];
    expect((await claim(idempotency, 1, '')).result).toEqual({ accepted: 1, rejected: 20, errors });
  });

  test('the oldest requests are forgotten if they need more memory than allowed', async () => {
    const idempotency = create(64 * KIB);
    for (let n = 0; n < 1_000; n++) await add(idempotency, n, 'x'.repeat(500));
    expect(idempotency.bytes).toBeLessThanOrEqual(64 * KIB);
    expect(idempotency.bytes).toBeGreaterThan(58 * KIB);
    expect([await isKnown(idempotency, 0), await isKnown(idempotency, 999)]).toEqual([false, true]);
    for (let n = 0; n < 1_000; n++) await add(idempotency, n, 'x'.repeat(100 * KIB));
    expect(idempotency.bytes).toBe(0);
  });

  test('of two segments with the same request, the later one counts, in whatever order they are read', async () => {
    const idempotency = create(64 * KIB);
    const result = { accepted: 1, rejected: 0, errors: [] };
    const first = await claim(idempotency, 1, '');
    const { request } = first.batches[0] ?? {};
    first.end(false);
    if (request === undefined) throw new Error('no request');
    idempotency.restore({ ...request, result: { ...result, accepted: 2 } }, 5);
    idempotency.restore({ ...request, result }, 3);
    expect((await claim(idempotency, 1, '')).result.accepted).toBe(2);
  });

  test('calls after the end of a claim change nothing', async () => {
    const idempotency = create(64 * KIB);
    const first = await claim(idempotency, 1, '', true);
    first.end(false);
    first.stored(1);
    const second = await claim(idempotency, 1, '', true);
    expect(second.batches[0]?.isRepeat).toBe(false);
    second.stored(1);
    first.end(true);
    second.end(false);
    expect((await claim(idempotency, 1, '', true)).batches[0]?.isRepeat).toBe(true);
  });
});
