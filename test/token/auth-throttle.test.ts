import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AuthThrottle } from '../../src/token/auth-throttle.ts';
import { API_KEY, startTestApp, type TestApp, type TestResponse } from '../support/app.ts';
import { flushPromises, ManualTimer } from '../support/manual-timer.ts';

describe('the auth throttle', () => {
  let timer: ManualTimer;
  let throttle: AuthThrottle;
  beforeEach(() => {
    timer = new ManualTimer();
    throttle = new AuthThrottle(timer);
  });

  /** The delay of the next failure of this address in milliseconds. */
  const measureDelay = async (address: string) => {
    let isDone = false;
    void throttle.delayFailure(address).then(() => {
      isDone = true;
    });
    await flushPromises();
    const startedAt = timer.now();
    while (!isDone) await timer.advance(50);
    return timer.now() - startedAt;
  };
  /** Fails without waiting for the delays. */
  const fail = (address: string, times: number) => {
    for (let i = 0; i < times; i++) void throttle.delayFailure(address);
  };

  test('does not delay the first ten failures of an address', async () => {
    for (let i = 0; i < 10; i++) expect(await measureDelay('10.0.0.1')).toBe(0);
  });

  test('delays every failure from the eleventh on longer than the one before', async () => {
    fail('10.0.0.1', 10);
    const finished: number[] = [];
    for (const nth of [11, 12, 13])
      void throttle.delayFailure('10.0.0.1').then(() => finished.push(nth, timer.now()));
    await timer.advance(10_000);
    expect(finished).toEqual([11, 200, 12, 400, 13, 600]);
  });

  test('allows five guesses per second to a client that waits for each response', async () => {
    fail('10.0.0.1', 10);
    for (let i = 0; i < 20; i++) expect(await measureDelay('10.0.0.1')).toBe(200);
  });

  test('delays no failure longer than 10 s', async () => {
    fail('10.0.0.1', 300);
    expect(await measureDelay('10.0.0.1')).toBe(10_000);
  });

  test('does not delay another address', async () => {
    fail('10.0.0.1', 1000);
    expect(await measureDelay('10.0.0.2')).toBe(0);
  });

  test('drops one failure every 200 ms', async () => {
    fail('10.0.0.1', 10);
    await timer.advance(400);
    expect(await measureDelay('10.0.0.1')).toBe(0);
    expect(await measureDelay('10.0.0.1')).toBe(0);
    expect(await measureDelay('10.0.0.1')).toBe(200);
  });

  test('has no delay left 15 s after the largest attack', async () => {
    fail('10.0.0.1', 300);
    await timer.advance(12_000);
    for (let i = 0; i < 10; i++) expect(await measureDelay('10.0.0.1')).toBe(0);
  });

  test('drops addresses without a delay first when there are too many', async () => {
    for (let i = 0; i < 9_999; i++) fail(`quiet ${i}`, 1);
    await timer.advance(200);
    fail('busy', 50);
    fail('one more', 1);
    expect(await measureDelay('busy')).toBeGreaterThan(0);
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
    const all = Array.from({ length: times }, (_, i) =>
      send(`wrong-${i}`, path).then(response => responses.push(response)),
    );
    return { responses, all: Promise.all(all) };
  };
  /** A round trip: every response that was ready before it has been sent. */
  const roundTrips = async () => {
    for (let i = 0; i < 20; i++) await app.get('/health');
  };

  test('a valid token from the same address is never delayed by failures', async () => {
    const { responses, all } = guess(60);
    await roundTrips();
    expect(responses).toHaveLength(10);
    for (let i = 0; i < 20; i++) expect((await send(API_KEY)).status).toBe(200);
    expect(responses).toHaveLength(10);
    await app.pass(10_000);
    await all;
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([401]));
  });

  test('a request without a token is not a failure and is not delayed', async () => {
    const { all } = guess(40);
    for (let i = 0; i < 40; i++) expect((await send('')).status).toBe(401);
    await app.pass(10_000);
    await all;
    for (let i = 0; i < 10; i++) expect((await send(`wrong ${i}`)).status).toBe(401);
  });

  test.each(['/api/endpoints', '/openapi.json'])(
    'a wrong token is throttled on every route whose response depends on the token: %s',
    async path => {
      const { responses, all } = guess(30, path);
      await roundTrips();
      expect(responses).toHaveLength(10);
      await app.pass(10_000);
      await all;
    },
  );

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
