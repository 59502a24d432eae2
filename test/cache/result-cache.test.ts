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
    cache = new ResultCache(64 * MIB, timer, () => 100);
    store = new CountedLoad(timer);
  });
  const get = (key = 'k', options: GetOptions = {}) =>
    cache.get({ key, lifetime, load: store.load }, options);

  test('age and time until the next refresh count from the start of the load', async () => {
    store.tookMs = 2_000;
    const result = get();
    await timer.advance(2_000);
    expect(await result).toEqual({
      value: 1,
      outcome: 'miss',
      ageMs: 2_000,
      freshForMs: 298_000,
      expiresInMs: 898_000,
    });
    await timer.advance(5_000);
    expect(await get()).toMatchObject({ ageMs: 7_000, freshForMs: 293_000 });
  });

  test('an empty value is returned for 10 s, and its entry is still refreshed', async () => {
    cache = new ResultCache(
      64 * MIB,
      timer,
      () => 100,
      value => value === 1,
    );
    expect(await get()).toMatchObject({ value: 1, freshForMs: 10_000, expiresInMs: 10_000 });
    await timer.advance(9_999);
    expect(await get()).toMatchObject({ value: 1, outcome: 'hit', freshForMs: 1, expiresInMs: 1 });
    await timer.advance(1);
    expect(cache.getCached('k')).toBeUndefined();
    await timer.advance(290_000);
    expect(cache.expireAndListDue()).toHaveLength(1);
    expect(await get()).toMatchObject({ value: 2, outcome: 'miss', expiresInMs: 900_000 });
  });

  test('after all entries are removed, neither an old result nor that of a load that was running is returned', async () => {
    await get('a');
    store.tookMs = 1_000;
    const running = get('b');
    cache.removeWhere(() => true);
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
    await timer.advance(1_000);
    expect((await running).value).toBe(2); // its own request gets it
    store.tookMs = 0;
    expect(await get('a')).toMatchObject({ value: 3, outcome: 'miss' });
    expect(await get('b')).toMatchObject({ value: 4, outcome: 'miss' });
  });

  test('a request with forceRefresh does not delay other requests', async () => {
    await get();
    store.tookMs = 5_000;
    const forced = get('k', { forceRefresh: true });
    expect(await get()).toMatchObject({ value: 1, outcome: 'hit' });
    await timer.advance(5_000);
    expect((await forced).value).toBe(2);
  });

  describe('requests that are aborted', () => {
    test('a load is cancelled when its last waiter aborts, not earlier', async () => {
      store.tookMs = 1_000;
      const gone = new AbortController();
      const both = Promise.allSettled([get('other', gone), get('other')]);
      gone.abort(new Error('aborted'));
      await timer.advance(1_000);
      expect(await both).toMatchObject([
        { status: 'rejected' },
        { value: { value: 1, outcome: 'collapsed' } },
      ]);
      const [first, second] = [new AbortController(), new AbortController()];
      const results = Promise.allSettled([get('k', first), get('k', second)]);
      first.abort(new Error('aborted'));
      await timer.advance(1);
      expect(store.cancelled).toBe(0);
      second.abort(new Error('aborted'));
      expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      expect(store.cancelled).toBe(1);
    });

    test('a request that is aborted before it begins starts no load', async () => {
      await expect(get('k', { signal: AbortSignal.abort(new Error('aborted')) })).rejects.toThrow('aborted');
      expect(store.runs).toBe(0);
    });
  });

  describe('the limit in bytes', () => {
    test('a result larger than the cache evicts no other entry', async () => {
      cache = new ResultCache(MIB, timer, value => (value === 2 ? 2 * MIB : 100));
      await get('small');
      expect(await get('large')).toMatchObject({ value: 2, outcome: 'miss' });
      expect((await get('small')).outcome).toBe('hit');
      expect(cache.size).toBe(1);
    });

    test('a value that has grown is counted with its new size', async () => {
      let size = 100;
      cache = new ResultCache(MIB, timer, () => size);
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
