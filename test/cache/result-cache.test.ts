import { beforeEach, describe, expect, test } from 'vitest';
import { type GetOptions, ResultCache } from '../../src/cache/result-cache.ts';
import { CountedLoad } from '../support/counted-load.ts';
import { ManualTimer } from '../support/manual-timer.ts';

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

  test('a second request within 900 s does not run the query', async () => {
    expect(await get()).toEqual({ value: 1, outcome: 'miss', ageMs: 0, freshForMs: 300_000 });
    await timer.advance(899_999);
    expect(await get()).toEqual({ value: 1, outcome: 'hit', ageMs: 899_999, freshForMs: 0 });
    expect(store.runs).toBe(1);
  });

  test('a request 900 s after the load runs the query', async () => {
    await get();
    await timer.advance(900_000);
    expect(await get()).toMatchObject({ value: 2, outcome: 'miss', ageMs: 0 });
  });

  test('the age of a result counts from the start of its load', async () => {
    store.tookMs = 2_000;
    const result = get();
    await timer.advance(2_000);
    expect((await result).ageMs).toBe(2_000);
    await timer.advance(5_000);
    expect((await get()).ageMs).toBe(7_000);
  });

  test('freshForMs is the time until the next refresh', async () => {
    await get();
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

  test('different keys have different entries', async () => {
    await get('a');
    expect((await get('b')).outcome).toBe('miss');
    expect(cache.size).toBe(2);
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
    test('runs the query again, and later requests get the new result', async () => {
      await get();
      await timer.advance(60_000);
      expect(await get('k', { forceRefresh: true })).toMatchObject({
        value: 2,
        outcome: 'request',
        ageMs: 0,
      });
      expect(await get()).toMatchObject({ value: 2, outcome: 'hit' });
    });

    test('gets the cached result within 10 s of the last forced refresh', async () => {
      await get();
      await get('k', { forceRefresh: true });
      await timer.advance(9_999);
      expect(await get('k', { forceRefresh: true })).toMatchObject({ value: 2, outcome: 'hit' });
      await timer.advance(1);
      expect(await get('k', { forceRefresh: true })).toMatchObject({ value: 3, outcome: 'request' });
    });

    test('counts as a forced refresh if the cache was empty', async () => {
      await get('k', { forceRefresh: true });
      expect(await get('k', { forceRefresh: true })).toMatchObject({ value: 1, outcome: 'hit' });
    });

    test('counts as a forced refresh if the entry had just expired', async () => {
      await get();
      await timer.advance(lifetime.lifetimeMs);
      expect(await get('k', { forceRefresh: true })).toMatchObject({ value: 2, outcome: 'request' });
      expect(await get('k', { forceRefresh: true })).toMatchObject({ value: 2, outcome: 'hit' });
    });

    test('gets the error of a failed refresh, while others get the cached result and the 10 s limit applies', async () => {
      await get();
      store.failing = true;
      await expect(get('k', { forceRefresh: true })).rejects.toThrow('the store is unavailable');
      expect(await get()).toMatchObject({ value: 1, outcome: 'hit' });
      expect(await get('k', { forceRefresh: true })).toMatchObject({ value: 1, outcome: 'hit' });
      expect(store.runs).toBe(2);
    });

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

    test('a request after a cancelled load starts a new load', async () => {
      store.tookMs = 1_000;
      const controller = new AbortController();
      const aborted = get('k', controller);
      controller.abort(new Error('aborted'));
      await expect(aborted).rejects.toThrow('aborted');
      const next = get();
      await timer.advance(1_000);
      expect(await next).toMatchObject({ value: 2, outcome: 'miss' });
    });
  });

  describe('the limit in bytes', () => {
    test('the least recently requested entry is evicted first', async () => {
      cache = new ResultCache(2 * MIB, () => MIB * 0.6, timer);
      for (const key of ['a', 'b', 'c']) await get(key);
      expect((await get('a')).outcome).toBe('hit');
      await get('d');
      expect((await get('a')).outcome).toBe('hit');
      expect((await get('b')).outcome).toBe('miss');
      expect(cache.bytes).toBeLessThanOrEqual(2 * MIB);
    });

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
