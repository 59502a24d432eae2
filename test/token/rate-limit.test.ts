import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RateLimit } from '../../src/token/rate-limit.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { storedToken } from '../support/tokens.ts';

describe('the rate limit of a token', () => {
  const withRate = (rate: number | undefined, secret = 'secret') => storedToken('t', secret, { rate });
  const rates = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.double({ min: 0.01, max: 50, noNaN: true }));
  const step = fc.record({ advanceMs: fc.nat(3_000), requests: fc.nat(20) });

  test('allows the rate and one bucket in any period, and a request after the returned time', async () => {
    await fc.assert(
      fc.asyncProperty(rates, fc.array(step, { maxLength: 30 }), async (rate, steps) => {
        const timer = new ManualTimer();
        const limit = new RateLimit(timer);
        const capacity = Math.max(1, rate);
        const allowedAt: number[] = [];
        let waitSeconds = 0;
        const request = () => {
          // A reload of the tokens file creates another object for the same token.
          waitSeconds = limit.take({ ...withRate(rate) });
          if (waitSeconds === 0) allowedAt.push(timer.now());
        };
        for (let count = 0; count < 60; count++) request();
        expect(allowedAt).toHaveLength(Math.floor(capacity));
        for (const { advanceMs, requests } of steps) {
          await timer.advance(advanceMs);
          for (let count = 0; count < requests; count++) request();
        }
        for (const [first, from] of allowedAt.entries())
          for (const [last, to] of allowedAt.entries())
            if (first < last)
              expect(last - first + 1).toBeLessThanOrEqual(capacity + ((to - from) / 1000) * rate + 1e-6);
        await timer.advance(Math.ceil(waitSeconds) * 1000);
        expect(waitSeconds === 0 || limit.take(withRate(rate)) === 0).toBe(true);
        expect(limit.take(withRate(rate, 'other'))).toBe(0);
      }),
    );
  });

  test('a token without a rate is never limited', () => {
    const limit = new RateLimit(new ManualTimer());
    for (let count = 0; count < 1_000; count++) expect(limit.take(withRate(undefined))).toBe(0);
  });
});
