import { describe, expect, test } from 'vitest';
import { RateLimit } from '../../src/token/rate-limit.ts';
import { storedToken } from '../support/made-tokens.ts';
import { ManualTimer } from '../support/manual-timer.ts';

describe('the rate of a token', () => {
  const start = () => {
    const timer = new ManualTimer();
    return { timer, limit: new RateLimit(timer) };
  };
  const withRate = (rate: number | undefined, secret = 'secret') => storedToken('t', secret, { rate });
  /** How many are let through, asked at once. */
  const takeAll = (limit: RateLimit, token = withRate(2), asked = 100) =>
    Array.from({ length: asked }, () => limit.take(token)).filter(wait => wait === 0).length;

  test.each([
    [1, 1],
    [2, 2],
    [10, 10],
    [2.5, 2],
    [0.5, 1],
    [0.001, 1],
  ])('at %d a second, %d may come at once', (rate, count) => {
    expect(takeAll(start().limit, withRate(rate))).toBe(count);
  });

  test('one more is told how long to wait', () => {
    const { limit } = start();
    takeAll(limit);
    expect(limit.take(withRate(2))).toBeCloseTo(0.5);
    takeAll(limit, withRate(0.1, 'slow'));
    expect(limit.take(withRate(0.1, 'slow'))).toBeCloseTo(10);
  });

  test('the bucket refills steadily, not by the full second', async () => {
    const { timer, limit } = start();
    takeAll(limit);
    await timer.advance(499);
    expect(limit.take(withRate(2))).toBeGreaterThan(0);
    await timer.advance(1);
    expect(limit.take(withRate(2))).toBe(0);
    expect(limit.take(withRate(2))).toBeGreaterThan(0);
  });

  test('waiting as long as told is enough', async () => {
    for (const rate of [0.3, 0.7, 1, 3, 7, 60, 1000]) {
      const { timer, limit } = start();
      takeAll(limit, withRate(rate), 2000);
      await timer.advance(Math.ceil(limit.take(withRate(rate))) * 1000);
      expect(limit.take(withRate(rate)), `${rate} a second`).toBe(0);
    }
  });

  test('a long rest saves up one second’s worth and no more', async () => {
    const { timer, limit } = start();
    takeAll(limit);
    await timer.advance(3_600_000);
    expect(takeAll(limit)).toBe(2);
  });

  test('over a minute it comes to rate times 60, and the first bucket', async () => {
    const { timer, limit } = start();
    let taken = 0;
    for (let ms = 0; ms < 60_000; ms += 50) {
      taken += takeAll(limit, withRate(2), 3);
      await timer.advance(50);
    }
    expect(taken).toBeGreaterThanOrEqual(120);
    expect(taken).toBeLessThanOrEqual(122);
  });

  test('asking in vain costs nothing', async () => {
    const { timer, limit } = start();
    takeAll(limit, withRate(2), 10_000);
    await timer.advance(500);
    expect(limit.take(withRate(2))).toBe(0);
  });

  test('tokens have buckets of their own', () => {
    const { limit } = start();
    takeAll(limit, withRate(2, 'one'));
    expect(takeAll(limit, withRate(2, 'two'))).toBe(2);
  });

  test('a token that is read from its file again keeps its bucket', () => {
    const { limit } = start();
    takeAll(limit, withRate(2));
    expect(limit.take({ ...withRate(2), name: 'read again' })).toBeGreaterThan(0);
  });

  test('a token without a rate is never asked to wait', () => {
    expect(takeAll(start().limit, withRate(undefined), 10_000)).toBe(10_000);
  });
});
