import { beforeEach, describe, expect, test } from 'vitest';
import { ResultCache } from '../../src/cache/result-cache.ts';
import { Warmer } from '../../src/cache/warmer.ts';
import { CountedLoad } from '../support/counted-load.ts';
import { flushPromises, ManualTimer } from '../support/manual-timer.ts';

const lifetime = { lifetimeMs: 900_000, refreshAfterMs: 300_000 };
const MINUTE = 60_000;

describe('the warmer', () => {
  let timer: ManualTimer;
  let cache: ResultCache<number>;
  let store: CountedLoad;
  beforeEach(() => {
    timer = new ManualTimer();
    cache = new ResultCache(64 * 1024 * 1024, timer, () => 100);
    store = new CountedLoad(timer);
  });
  const startWarmer = (onFailure?: (key: string, error: unknown) => void) => {
    const warmer = new Warmer(cache, timer, onFailure);
    warmer.start();
    return warmer;
  };
  const get = (key = 'k', load = store.load) => cache.get({ key, lifetime, load });

  test('an entry that is requested every minute is refreshed every 300 s, and every request is a hit', async () => {
    startWarmer();
    await get();
    for (let minute = 1; minute <= 60; minute++) {
      await timer.advance(MINUTE);
      const { outcome, ageMs } = await get();
      expect(outcome).toBe('hit');
      expect(ageMs).toBeLessThanOrEqual(302_000);
    }
    expect(store.runs).toBeGreaterThanOrEqual(12);
    expect(store.runs).toBeLessThanOrEqual(13);
  });

  test('an entry expires after 900 s without requests, and its refreshes stop', async () => {
    startWarmer();
    await get();
    await timer.advance(100 * MINUTE);
    expect(store.runs).toBe(3); // the first request, and refreshes at 300 s and 600 s
    expect(cache.size).toBe(0);
    expect((await get()).outcome).toBe('miss');
  });

  test('requests during a refresh get the cached value immediately', async () => {
    startWarmer();
    await get();
    store.tookMs = 10_000;
    await timer.advance(305_000);
    expect(store.runs).toBe(2);
    expect(await get()).toMatchObject({ value: 1, outcome: 'hit' });
    await timer.advance(10_000);
    expect(await get()).toMatchObject({ value: 2, outcome: 'hit' });
  });

  test('a failed refresh keeps the value until it is 900 s old; then the request gets the error', async () => {
    startWarmer();
    await get();
    store.failing = true;
    for (let minute = 1; minute < 15; minute++) {
      await timer.advance(MINUTE);
      expect(await get()).toMatchObject({ value: 1, outcome: 'hit' });
    }
    await timer.advance(MINUTE);
    await expect(get()).rejects.toThrow('the store is unavailable');
  });

  test('a failed refresh is retried with exponential back-off, and the next one is 300 s after a success', async () => {
    startWarmer();
    await get();
    store.failing = true;
    const runsAt: number[] = [];
    for (let second = 0; second < 500; second++) {
      const before = store.runs;
      await timer.advance(1_000);
      if (store.runs > before) runsAt.push(second + 1);
    }
    const pauses = runsAt.slice(1).map((at, index) => at - (runsAt[index] ?? 0));
    expect(runsAt[0]).toBe(300);
    expect(pauses).toEqual([5, 10, 20, 40, 80]);
    store.failing = false;
    await timer.advance(115_000); // the next retry is 160 s after the last one
    expect(await get()).toMatchObject({ outcome: 'hit', ageMs: 0, freshForMs: 300_000 });
  });

  test('a failed refresh is reported with its key and its error, unless the warmer was stopped', async () => {
    const failures: [string, string][] = [];
    const warmer = startWarmer((key, error) => failures.push([key, (error as Error).message]));
    await get();
    store.failing = true;
    await timer.advance(300_000);
    expect(failures).toEqual([['k', 'the store is unavailable']]);
    store.tookMs = 10;
    await timer.advance(5_000);
    warmer.stop();
    await timer.advance(1_000);
    await timer.advance(800_000); // no refresh starts after stop
    expect([store.runs, cache.refreshFailures]).toEqual([3, 2]);
    expect(failures).toHaveLength(1);
  });

  test('a request without a valid value joins the running refresh and raises its priority', async () => {
    startWarmer();
    await get();
    store.tookMs = 700_000;
    await timer.advance(300_000);
    expect(store.lastCallers?.ids.size).toBe(0);
    await timer.advance(600_000);
    const result = get();
    await flushPromises();
    expect(store.lastCallers?.ids.size).toBe(1);
    await timer.advance(100_000);
    expect(await result).toMatchObject({ value: 2, outcome: 'collapsed', ageMs: 700_000 });
    expect(store.runs).toBe(2);
  });

  test('a request that joined a refresh and is aborted does not cancel the refresh', async () => {
    startWarmer();
    await get();
    store.tookMs = 700_000;
    await timer.advance(900_000);
    const controller = new AbortController();
    const result = cache.get({ key: 'k', lifetime, load: store.load }, controller);
    controller.abort(new Error('aborted'));
    await expect(result).rejects.toThrow('aborted');
    await timer.advance(100_000);
    expect(store.cancelled).toBe(0);
    expect((await get()).outcome).toBe('hit');
  });

  test('the most recently requested entries are refreshed first', async () => {
    const order: string[] = [];
    const load = (key: string) => async () => order.push(key);
    for (const key of ['a', 'b', 'c']) await get(key, load(key));
    await timer.advance(10_000);
    await get('a', load('a'));
    order.length = 0;
    startWarmer();
    await timer.advance(295_000);
    expect(order).toEqual(['a', 'c', 'b']);
  });

  test('refreshes use at most a fifth of the time', async () => {
    for (let i = 0; i < 200; i++) await get(`k${i}`);
    store.tookMs = 2_000;
    const before = store.runs;
    startWarmer();
    await timer.advance(300_000);
    await timer.advance(400_000);
    const busyMs = (store.runs - before) * store.tookMs;
    expect(busyMs).toBeGreaterThan(400_000 * 0.15);
    expect(busyMs).toBeLessThanOrEqual(400_000 * 0.2 + store.tookMs);
  });

  test('an entry that expires during its refresh is not added again', async () => {
    startWarmer();
    await get();
    store.tookMs = 1_000_000;
    await timer.advance(301_000);
    await timer.advance(900_000); // 900 s without requests
    expect(cache.size).toBe(0);
    await timer.advance(1_000_000);
    expect(cache.size).toBe(0);
  });
});
