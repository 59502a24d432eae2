import { beforeEach, describe, expect, test } from 'vitest';
import { type GetOptions, ResultCache } from '../../src/cache/result-cache.ts';
import { CountedLoad } from '../support/counted-load.ts';
import { ManualTimer } from '../support/manual-timer.ts';

// model.test.ts covers hits, misses, forced refreshes, failures and the order of eviction.

const MIB = 1024 * 1024;
const lifetime = { lifetimeMs: 900_000, refreshAfterMs: 300_000 };

describe('the result cache', () => {
  let timer: ManualTimer;
  let cache: ResultCache<number>;
  let store: CountedLoad;
  beforeEach(() => {
    timer = new ManualTimer();
    cache = new ResultCache(64 * MIB, () => 100, timer);
    store = new CountedLoad(timer);
  });
  const get = (key = 'k', options: GetOptions = {}) =>
    cache.get({ key, lifetime, load: store.load }, options);

  test('the age of a result counts from the start of its load', async () => {
    store.tookMs = 2_000;
    const result = get();
    await timer.advance(2_000);
    expect((await result).ageMs).toBe(2_000);
    await timer.advance(5_000);
    expect((await get()).ageMs).toBe(7_000);
  });

  test('freshForMs is the time until the next refresh', async () => {
    expect(await get()).toEqual({ value: 1, outcome: 'miss', ageMs: 0, freshForMs: 300_000 });
    await timer.advance(100_000);
    expect((await get()).freshForMs).toBe(200_000);
  });

  test('after clear, neither an old result nor that of a load that was running is returned', async () => {
    await get('a');
    store.tookMs = 1_000;
    const running = get('b');
    cache.clear();
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
    await timer.advance(1_000);
    expect((await running).value).toBe(2); // its own request gets it
    store.tookMs = 0;
    expect(await get('a')).toMatchObject({ value: 3, outcome: 'miss' });
    expect(await get('b')).toMatchObject({ value: 4, outcome: 'miss' });
  });

  test('1,000 concurrent first requests run one query', async () => {
    store.tookMs = 50;
    const results = Array.from({ length: 1000 }, () => get());
    await timer.advance(50);
    const outcomes = (await Promise.all(results)).map(({ outcome }) => outcome);
    expect(store.runs).toBe(1);
    expect(outcomes.filter(outcome => outcome === 'miss')).toHaveLength(1);
    expect(outcomes.filter(outcome => outcome === 'collapsed')).toHaveLength(999);
  });

  test('an error is returned to every waiting request and is not cached', async () => {
    store.tookMs = 10;
    store.failing = true;
    const results = Promise.allSettled([get(), get()]);
    await timer.advance(10);
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    store.failing = false;
    store.tookMs = 0;
    expect(await get()).toMatchObject({ value: 2, outcome: 'miss' });
  });

  describe('a request with forceRefresh', () => {
    test('does not delay other requests', async () => {
      await get();
      store.tookMs = 5_000;
      const forced = get('k', { forceRefresh: true });
      expect(await get()).toMatchObject({ value: 1, outcome: 'hit' });
      await timer.advance(5_000);
      expect((await forced).value).toBe(2);
    });
  });

  describe('requests that are aborted', () => {
    test('a load is cancelled when its last waiter aborts', async () => {
      store.tookMs = 1_000;
      const [first, second] = [new AbortController(), new AbortController()];
      const results = Promise.allSettled([get('k', first), get('k', second)]);
      first.abort(new Error('aborted'));
      await timer.advance(1);
      expect(store.cancelled).toBe(0);
      second.abort(new Error('aborted'));
      expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      expect(store.cancelled).toBe(1);
    });

    test('an aborted request does not cancel the load that others wait for', async () => {
      store.tookMs = 1_000;
      const controller = new AbortController();
      const aborted = get('k', controller);
      const waiting = get();
      controller.abort(new Error('aborted'));
      await expect(aborted).rejects.toThrow('aborted');
      await timer.advance(1_000);
      expect(await waiting).toMatchObject({ value: 1, outcome: 'collapsed' });
      expect(store.cancelled).toBe(0);
    });

    test('a request that is aborted before it begins starts no load', async () => {
      await expect(get('k', { signal: AbortSignal.abort(new Error('aborted')) })).rejects.toThrow('aborted');
      expect(store.runs).toBe(0);
    });
  });

  describe('the limit in bytes', () => {
    test('a result larger than the cache is returned but not kept', async () => {
      cache = new ResultCache(MIB, () => 2 * MIB, timer);
      expect(await get()).toMatchObject({ value: 1, outcome: 'miss' });
      expect(cache.size).toBe(0);
      expect(cache.bytes).toBe(0);
    });

    test('a result larger than the cache evicts no other entry', async () => {
      cache = new ResultCache(MIB, value => (value === 2 ? 2 * MIB : 100), timer);
      await get('small');
      expect(await get('large')).toMatchObject({ value: 2, outcome: 'miss' });
      expect((await get('small')).outcome).toBe('hit');
      expect(cache.size).toBe(1);
    });

    test('a value that has grown is counted with its new size', async () => {
      let size = 100;
      cache = new ResultCache(MIB, () => size, timer);
      await get('a');
      const before = cache.bytes;
      size = 1_000;
      cache.updateSize('a');
      expect(cache.bytes - before).toBe(900);
      size = 2 * MIB;
      cache.updateSize('a');
      expect(cache.size).toBe(0);
    });
  });
});
