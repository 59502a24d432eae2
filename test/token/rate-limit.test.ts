import { describe, expect, test } from 'vitest';
import { RateLimit } from '../../src/token/rate-limit.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { storedToken } from '../support/tokens.ts';

describe('the rate limit of a token', () => {
  const start = () => {
    const timer = new ManualTimer();
    return { timer, limit: new RateLimit(timer) };
  };
  const withRate = (rate: number | undefined, secret = 'secret') => storedToken('t', secret, { rate });
  /** The number of requests allowed at the same moment. */
  const takeAll = (limit: RateLimit, token = withRate(2), count = 100) =>
    Array.from({ length: count }, () => limit.take(token)).filter(wait => wait === 0).length;

  test.each([
    [1, 1],
    [2, 2],
    [10, 10],
    [2.5, 2],
    [0.5, 1],
    [0.001, 1],
  ])('with a rate of %d per second, %d requests are allowed at once', (rate, count) => {
    expect(takeAll(start().limit, withRate(rate))).toBe(count);
  });

  test('one more request gets the time to wait', () => {
    const { limit } = start();
    takeAll(limit);
    expect(limit.take(withRate(2))).toBeCloseTo(0.5);
    takeAll(limit, withRate(0.1, 'slow'));
    expect(limit.take(withRate(0.1, 'slow'))).toBeCloseTo(10);
  });

  test('the bucket refills continuously, not once per second', async () => {
    const { timer, limit } = start();
    takeAll(limit);
    await timer.advance(499);
    expect(limit.take(withRate(2))).toBeGreaterThan(0);
    await timer.advance(1);
    expect(limit.take(withRate(2))).toBe(0);
    expect(limit.take(withRate(2))).toBeGreaterThan(0);
  });

  test('a request after the returned time is allowed', async () => {
    for (const rate of [0.3, 0.7, 1, 3, 7, 60, 1000]) {
      const { timer, limit } = start();
      takeAll(limit, withRate(rate), 2000);
      await timer.advance(Math.ceil(limit.take(withRate(rate))) * 1000);
      expect(limit.take(withRate(rate)), `${rate} a second`).toBe(0);
    }
  });

  test('the bucket never holds more than one second’s worth', async () => {
    const { timer, limit } = start();
    takeAll(limit);
    await timer.advance(3_600_000);
    expect(takeAll(limit)).toBe(2);
  });

  test('a minute allows 60 times the rate plus the first bucket', async () => {
    const { timer, limit } = start();
    let taken = 0;
    for (let ms = 0; ms < 60_000; ms += 50) {
      taken += takeAll(limit, withRate(2), 3);
      await timer.advance(50);
    }
    expect(taken).toBeGreaterThanOrEqual(120);
    expect(taken).toBeLessThanOrEqual(122);
  });

  test('a rejected request takes nothing from the bucket', async () => {
    const { timer, limit } = start();
    takeAll(limit, withRate(2), 10_000);
    await timer.advance(500);
    expect(limit.take(withRate(2))).toBe(0);
  });

  test('each token has its own bucket', () => {
    const { limit } = start();
    takeAll(limit, withRate(2, 'one'));
    expect(takeAll(limit, withRate(2, 'two'))).toBe(2);
  });

  test('a reload of the tokens file keeps the bucket', () => {
    const { limit } = start();
    takeAll(limit, withRate(2));
    expect(limit.take({ ...withRate(2), name: 'read again' })).toBeGreaterThan(0);
  });

  test('a token without a rate is never limited', () => {
    expect(takeAll(start().limit, withRate(undefined), 10_000)).toBe(10_000);
  });
});
