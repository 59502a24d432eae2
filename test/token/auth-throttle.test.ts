import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AuthThrottle } from '../../src/token/auth-throttle.ts';
import { API_KEY, startTestApp, type TestApp, type TestResponse } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';

describe('the auth throttle', () => {
  let timer: ManualTimer;
  let throttle: AuthThrottle;
  beforeEach(() => {
    timer = new ManualTimer();
    throttle = new AuthThrottle(timer);
  });

  const fail = (address: string, times: number) =>
    Array.from({ length: times }, () => throttle.countFailure(address));
  const FREE = Array.from({ length: 10 }, () => 0);

  test('allows ten failures and then five per second, delays none by more than 10 s, for each address alone', async () => {
    const step = fc.record({ address: fc.constantFrom('a', 'b'), times: fc.nat(80), thenMs: fc.nat(4_000) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async steps => {
        timer = new ManualTimer();
        throttle = new AuthThrottle(timer);
        const alone = { a: new AuthThrottle(timer), b: new AuthThrottle(timer) };
        const respondedAt: Record<'a' | 'b', number[]> = { a: [], b: [] };
        for (const { address, times, thenMs } of steps) {
          for (const delayMs of fail(address, times)) {
            expect(delayMs).toBe(alone[address].countFailure(address));
            expect(delayMs ?? 0).toBeLessThanOrEqual(10_000);
            if (delayMs !== undefined) respondedAt[address].push(timer.now() + delayMs);
          }
          await timer.advance(thenMs);
        }
        for (const times of Object.values(respondedAt))
          for (const [index, at] of times.entries()) {
            const from = times[Math.max(0, index - 20)] ?? at; // 20 responses earlier
            expect(Math.min(index, 20)).toBeLessThanOrEqual(10 + (at - from) / 200);
          }
        await timer.advance(12_000);
        expect(fail('a', 11)).toEqual([...FREE, 200]);
      }),
    );
  });

  test('allows at most 1000 responses of all addresses to wait, and does not refuse a response without a delay', () => {
    const cancels: (() => void)[] = [];
    const wait = (delayMs: number | undefined) => {
      if (delayMs) cancels.push(throttle.wait(delayMs, () => {}));
    };
    for (let i = 0; i < 30; i++) fail(`10.0.0.${i}`, 60).forEach(wait);
    expect(cancels).toHaveLength(1_000);
    expect(fail('10.0.1.1', 11)).toEqual([...FREE, undefined]);
    cancels[0]?.();
    cancels[0]?.(); // ends one wait only
    const delayMs = throttle.countFailure('10.0.1.1');
    expect(delayMs).toBe(200);
    wait(delayMs);
    expect(throttle.countFailure('10.0.1.1')).toBe(undefined);
  });

  test.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', true],
    ['2001:db8::1', '2001:db8:0:0:8::', true],
    ['1::2:3:4:5:6:7', '1:0:2:3:9:9:9:9', true],
    ['::1', '::2', true],
    ['fe80::1%eth0', 'fe80::2%eth0', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['1::', '::1', false],
  ])('throttles an IPv6 network of 64 bits as one address: %s and %s: %s', (one, other, isSame) => {
    fail(one, 10);
    expect(throttle.countFailure(other)).toBe(isSame ? 200 : 0);
  });

  test('forgets the addresses with the oldest failures when there are too many', async () => {
    fail('busy', 50);
    for (let i = 0; i < 9_999; i++) fail(`quiet ${i}`, 1);
    expect(throttle.countFailure('busy')).toBeGreaterThan(0);
    fail('one more', 1);
    expect(throttle.countFailure('busy')).toBeGreaterThan(0);
    for (let i = 0; i < 10_000; i++) fail(`other ${i}`, 1);
    expect(throttle.countFailure('busy')).toBe(0);
  });
});

describe('the auth throttle over HTTP', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({}, new ManualTimer()); // time passes only when a test advances it
  });
  afterEach(async () => {
    await app.pass(60_000); // ends the delays that still run
    await app.close();
  });

  const CALL = '/api/endpoints/query/logs.all?project=alpha';
  const send = (secret: string, path = CALL) => app.get(path, { headers: { 'X-API-KEY': secret } });
  const guess = (times: number, path = CALL) => {
    const responses: TestResponse[] = [];
    const disconnected: unknown[] = [];
    const all = Array.from({ length: times }, (_, i) =>
      send(`wrong-${i}`, path).then(
        response => responses.push(response),
        error => disconnected.push(error),
      ),
    );
    return { responses, disconnected, all: Promise.all(all) };
  };
  /** A round trip: every response that was ready before it has been sent. */
  const roundTrips = async () => {
    for (let i = 0; i < 20; i++) await app.get('/health');
  };

  // On every route whose response depends on the token.
  test.each([CALL, '/api/endpoints', '/openapi.json'])(
    'failures of an address delay no valid token: %s',
    async path => {
      const { responses, all } = guess(60, path);
      await roundTrips();
      expect(responses).toHaveLength(10);
      for (let i = 0; i < 20; i++) expect((await send(API_KEY)).status).toBe(200);
      expect(responses).toHaveLength(10);
      await app.pass(10_000);
      await all;
      expect(new Set(responses.map(({ status }) => status))).toEqual(
        new Set([path === '/openapi.json' ? 200 : 401]),
      );
    },
  );

  test('guesses in parallel get five responses per second; those that cannot wait are disconnected', async () => {
    const { responses, disconnected, all } = guess(200);
    await expect.poll(() => disconnected).toHaveLength(140);
    expect(responses).toHaveLength(10);
    for (let second = 1; second <= 10; second++) {
      await app.pass(1_000);
      await roundTrips();
      expect(responses).toHaveLength(10 + 5 * second);
    }
    await all;
    expect(disconnected).toHaveLength(140);
  });

  test('a delayed response closes its connection, and a request that follows it is not read', async () => {
    await guess(10).all;
    const connections = [await openConnection(app.url), await openConnection(app.url)] as const;
    for (const connection of connections)
      connection.write(rawRequest(`GET ${CALL}`, { 'X-API-KEY': 'wrong' }));
    await roundTrips();
    connections[1].write(rawRequest('GET /health'));
    await connections[1].ended;
    expect(connections[1].rest()).toBe('');
    await app.pass(1_000);
    const { status, headers } = await connections[0].next();
    expect([status, headers['connection'], headers['www-authenticate']]).toEqual([401, 'close', 'Bearer']);
    await connections[0].ended;
  });

  test('a request without a token is not a failure and is not delayed', async () => {
    const { all } = guess(40);
    for (let i = 0; i < 40; i++) expect((await send('')).status).toBe(401);
    await app.pass(10_000);
    await all;
    for (let i = 0; i < 10; i++) expect((await send(`wrong ${i}`)).status).toBe(401);
  });

  test('delayed responses are dropped when their clients disconnect', async () => {
    const leaving = new AbortController();
    const left = Array.from({ length: 50 }, () =>
      app.get(CALL, { headers: { 'X-API-KEY': 'wrong' }, signal: leaving.signal }).catch(() => 'left'),
    );
    await roundTrips();
    leaving.abort();
    await Promise.all(left);
    expect((await send(API_KEY)).status).toBe(200);
    await app.pass(10_000);
    expect(app.events.filter(event => event.type === 'request_failed')).toEqual([]);
  });
});
