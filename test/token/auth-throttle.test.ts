import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AuthThrottle } from '../../src/token/auth-throttle.ts';
import { type Answer, API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { ManualTimer, settle } from '../support/manual-timer.ts';

describe('guesses are slowed', () => {
  let timer: ManualTimer;
  let throttle: AuthThrottle;
  beforeEach(() => {
    timer = new ManualTimer();
    throttle = new AuthThrottle(timer);
  });

  /** How many milliseconds pass until this address is refused. */
  const waitOf = async (address: string) => {
    let isRefused = false;
    void throttle.delayFailure(address).then(() => {
      isRefused = true;
    });
    await settle();
    const startedAt = timer.now();
    while (!isRefused) await timer.advance(50);
    return timer.now() - startedAt;
  };
  /** Fails without waiting for the refusals. */
  const fail = (address: string, times: number) => {
    for (let i = 0; i < times; i++) void throttle.delayFailure(address);
  };

  test('ten wrong tokens are refused at once', async () => {
    for (let i = 0; i < 10; i++) expect(await waitOf('10.0.0.1')).toBe(0);
  });

  test('from the eleventh on each waits longer', async () => {
    fail('10.0.0.1', 10);
    const settled: number[] = [];
    for (const nth of [11, 12, 13])
      void throttle.delayFailure('10.0.0.1').then(() => settled.push(nth, timer.now()));
    await timer.advance(10_000);
    expect(settled).toEqual([11, 200, 12, 400, 13, 600]);
  });

  test('who waits for each refusal can make five guesses a second, and no more', async () => {
    fail('10.0.0.1', 10);
    for (let i = 0; i < 20; i++) expect(await waitOf('10.0.0.1')).toBe(200);
  });

  test('no refusal waits longer than ten seconds', async () => {
    fail('10.0.0.1', 300);
    expect(await waitOf('10.0.0.1')).toBe(10_000);
  });

  test('another address is not slowed', async () => {
    fail('10.0.0.1', 1000);
    expect(await waitOf('10.0.0.2')).toBe(0);
  });

  test('failures are forgotten, one every fifth of a second', async () => {
    fail('10.0.0.1', 10);
    await timer.advance(400);
    expect(await waitOf('10.0.0.1')).toBe(0);
    expect(await waitOf('10.0.0.1')).toBe(0);
    expect(await waitOf('10.0.0.1')).toBe(200);
  });

  test('after the worst of attacks a quiet quarter of a minute forgets all', async () => {
    fail('10.0.0.1', 300);
    await timer.advance(12_000);
    for (let i = 0; i < 10; i++) expect(await waitOf('10.0.0.1')).toBe(0);
  });

  test('among more addresses than are kept, the quiet ones are forgotten first', async () => {
    for (let i = 0; i < 9_999; i++) fail(`quiet ${i}`, 1);
    await timer.advance(200);
    fail('busy', 50);
    fail('one more', 1);
    expect(await waitOf('busy')).toBeGreaterThan(0);
  });
});

describe('guesses over HTTP', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({}, new ManualTimer()); // time stands still unless a test lets it pass
  });
  afterEach(async () => {
    await app.pass(60_000); // lets go of whoever still waits
    await app.close();
  });

  const CALL = '/api/endpoints/query/logs.all?project=alpha';
  const ask = (secret: string, path = CALL) => app.get(path, { headers: { 'X-API-KEY': secret } });
  const guess = (times: number, path = CALL) => {
    const answers: Answer[] = [];
    const all = Array.from({ length: times }, (_, i) =>
      ask(`wrong-${i}`, path).then(answer => answers.push(answer)),
    );
    return { answers, all: Promise.all(all) };
  };
  /** A round trip of our own, after which whatever could be answered before it has been. */
  const roundTrips = async () => {
    for (let i = 0; i < 20; i++) await app.get('/health');
  };

  test('a good token from the same address never waits, however many guesses do', async () => {
    const { answers, all } = guess(60);
    await roundTrips();
    expect(answers).toHaveLength(10);
    for (let i = 0; i < 20; i++) expect((await ask(API_KEY)).status).toBe(200);
    expect(answers).toHaveLength(10);
    await app.pass(10_000);
    await all;
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  });

  test('a call without a token is no guess, and waits for none', async () => {
    const { all } = guess(40);
    for (let i = 0; i < 40; i++) expect((await ask('')).status).toBe(401);
    await app.pass(10_000);
    await all;
    for (let i = 0; i < 10; i++) expect((await ask(`wrong ${i}`)).status).toBe(401);
  });

  test.each(['/api/endpoints', '/openapi.json'])(
    'a route that answers good tokens otherwise than wrong ones slows guesses too: %s',
    async path => {
      const { answers, all } = guess(30, path);
      await roundTrips();
      expect(answers).toHaveLength(10);
      await app.pass(10_000);
      await all;
    },
  );

  test('what a page of guesses costs is over when their callers leave', async () => {
    const leaving = new AbortController();
    const left = Array.from({ length: 50 }, () =>
      app.get(CALL, { headers: { 'X-API-KEY': 'wrong' }, signal: leaving.signal }).catch(() => 'left'),
    );
    await roundTrips();
    leaving.abort();
    await Promise.all(left);
    expect((await ask(API_KEY)).status).toBe(200);
    await app.pass(10_000);
    expect(app.events.filter(event => event.type === 'request_failed')).toEqual([]);
  });
});
