import { beforeEach, describe, expect, test } from 'vitest';
import { ResultCache } from '../../src/cache/result-cache.ts';
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
  const ask = (key = 'k', caller: { forceRefresh?: boolean; signal?: AbortSignal } = {}) =>
    cache.get({ key, lifetime, load: store.load }, caller);

  test('a first call runs the query, a second within 900 s runs none', async () => {
    expect(await ask()).toEqual({ value: 1, outcome: 'miss', ageMs: 0, freshForMs: 300_000 });
    await timer.advance(899_999);
    expect(await ask()).toEqual({ value: 1, outcome: 'hit', ageMs: 899_999, freshForMs: 0 });
    expect(store.runs).toBe(1);
  });

  test('no answer is ever 900 s old: the call after that runs the query', async () => {
    await ask();
    await timer.advance(900_000);
    expect(await ask()).toMatchObject({ value: 2, outcome: 'miss', ageMs: 0 });
  });

  test('the age of an answer counts from the start of its load', async () => {
    store.tookMs = 2_000;
    const answer = ask();
    await timer.advance(2_000);
    expect((await answer).ageMs).toBe(2_000);
    await timer.advance(5_000);
    expect((await ask()).ageMs).toBe(7_000);
  });

  test('a copy is as good as asking again until the next warming', async () => {
    await ask();
    await timer.advance(100_000);
    expect((await ask()).freshForMs).toBe(200_000);
  });

  test('different keys are different entries', async () => {
    await ask('a');
    expect((await ask('b')).outcome).toBe('miss');
    expect(cache.size).toBe(2);
  });

  test('a thousand concurrent first calls run one query', async () => {
    store.tookMs = 50;
    const calls = Array.from({ length: 1000 }, () => ask());
    await timer.advance(50);
    const outcomes = (await Promise.all(calls)).map(found => found.outcome);
    expect(store.runs).toBe(1);
    expect(outcomes.filter(outcome => outcome === 'miss')).toHaveLength(1);
    expect(outcomes.filter(outcome => outcome === 'collapsed')).toHaveLength(999);
  });

  test('errors are told to everyone who waited, and never cached', async () => {
    store.tookMs = 10;
    store.failing = true;
    const calls = Promise.allSettled([ask(), ask()]);
    await timer.advance(10);
    expect((await calls).map(call => call.status)).toEqual(['rejected', 'rejected']);
    store.failing = false;
    store.tookMs = 0;
    expect(await ask()).toMatchObject({ value: 2, outcome: 'miss' });
  });

  describe('a caller who forceRefresh', () => {
    test('runs the query again, and the fresh answer then serves everyone', async () => {
      await ask();
      await timer.advance(60_000);
      expect(await ask('k', { forceRefresh: true })).toMatchObject({
        value: 2,
        outcome: 'request',
        ageMs: 0,
      });
      expect(await ask()).toMatchObject({ value: 2, outcome: 'hit' });
    });

    test('gets the entry at hand within 10 s of the last such run', async () => {
      await ask();
      await ask('k', { forceRefresh: true });
      await timer.advance(9_999);
      expect(await ask('k', { forceRefresh: true })).toMatchObject({ value: 2, outcome: 'hit' });
      await timer.advance(1);
      expect(await ask('k', { forceRefresh: true })).toMatchObject({ value: 3, outcome: 'request' });
    });

    test('counts as such a run though it came first of all', async () => {
      await ask('k', { forceRefresh: true });
      expect(await ask('k', { forceRefresh: true })).toMatchObject({ value: 1, outcome: 'hit' });
    });

    test('counts as such a run though it found an entry that had just ended', async () => {
      await ask();
      await timer.advance(lifetime.lifetimeMs);
      expect(await ask('k', { forceRefresh: true })).toMatchObject({ value: 2, outcome: 'request' });
      expect(await ask('k', { forceRefresh: true })).toMatchObject({ value: 2, outcome: 'hit' });
    });

    test('sees the error of a run that fails; the others keep the good value, and the pause holds', async () => {
      await ask();
      store.failing = true;
      await expect(ask('k', { forceRefresh: true })).rejects.toThrow('the store is unavailable');
      expect(await ask()).toMatchObject({ value: 1, outcome: 'hit' });
      expect(await ask('k', { forceRefresh: true })).toMatchObject({ value: 1, outcome: 'hit' });
      expect(store.runs).toBe(2);
    });

    test('does not keep ordinary callers waiting', async () => {
      await ask();
      store.tookMs = 5_000;
      const insisting = ask('k', { forceRefresh: true });
      expect(await ask()).toMatchObject({ value: 1, outcome: 'hit' });
      await timer.advance(5_000);
      expect((await insisting).value).toBe(2);
    });
  });

  describe('callers who leave', () => {
    test('when every caller of a load has gone, it is cancelled', async () => {
      store.tookMs = 1_000;
      const [first, second] = [new AbortController(), new AbortController()];
      const calls = Promise.allSettled([ask('k', first), ask('k', second)]);
      first.abort(new Error('left'));
      await timer.advance(1);
      expect(store.cancelled).toBe(0);
      second.abort(new Error('left'));
      expect((await calls).map(call => call.status)).toEqual(['rejected', 'rejected']);
      expect(store.cancelled).toBe(1);
    });

    test('a caller that leaves does not cancel the others', async () => {
      store.tookMs = 1_000;
      const leaving = new AbortController();
      const left = ask('k', leaving);
      const staying = ask();
      leaving.abort(new Error('left'));
      await expect(left).rejects.toThrow('left');
      await timer.advance(1_000);
      expect(await staying).toMatchObject({ value: 1, outcome: 'collapsed' });
      expect(store.cancelled).toBe(0);
    });

    test('a call that follows a cancelled load begins one of its own', async () => {
      store.tookMs = 1_000;
      const leaving = new AbortController();
      const left = ask('k', leaving).catch(() => 'gone');
      leaving.abort(new Error('left'));
      expect(await left).toBe('gone');
      const next = ask();
      await timer.advance(1_000);
      expect(await next).toMatchObject({ value: 2, outcome: 'miss' });
    });
  });

  describe('its bound in bytes', () => {
    test('the least recently asked goes first', async () => {
      cache = new ResultCache(2 * MIB, () => MIB * 0.6, timer);
      for (const key of ['a', 'b', 'c']) await ask(key);
      expect((await ask('a')).outcome).toBe('hit');
      await ask('d');
      expect((await ask('a')).outcome).toBe('hit');
      expect((await ask('b')).outcome).toBe('miss');
      expect(cache.bytes).toBeLessThanOrEqual(2 * MIB);
    });

    test('an answer larger than the whole cache is given and not kept', async () => {
      cache = new ResultCache(MIB, () => 2 * MIB, timer);
      expect(await ask()).toMatchObject({ value: 1, outcome: 'miss' });
      expect(cache.size).toBe(0);
      expect(cache.bytes).toBe(0);
    });

    test('a value that grows counts anew', async () => {
      let size = 100;
      cache = new ResultCache(MIB, () => size, timer);
      await ask('a');
      const before = cache.bytes;
      size = 1_000;
      cache.updateSize('a');
      expect(cache.bytes - before).toBe(900);
      size = 2 * MIB;
      cache.updateSize('a');
      expect(cache.size).toBe(0);
    });
  });

  test('a closed cache cancels what it is loading and keeps nothing', async () => {
    store.tookMs = 1_000;
    const call = ask();
    cache.close();
    await expect(call).rejects.toThrow('closed');
    expect(cache.size).toBe(0);
  });
});
