import { afterEach, describe, expect, test } from 'vitest';
import type { StoreOptions } from '../../src/store/open-store.ts';
import { ENDLESS, openTestStore, QUICK, type TestStore } from '../support/store.ts';

// ENDLESS takes hours. If the only connection serves another query, ENDLESS was cancelled in DuckDB.
describe('queries of the embedded store', () => {
  let opened: TestStore | undefined;
  const open = async (limits: Partial<StoreOptions>) => {
    opened = await openTestStore({ queryConcurrency: 1, ...limits });
    return opened.store;
  };
  afterEach(async () => {
    await opened?.close();
    opened = undefined;
  });

  /** 'completed', or the code or message of the error. Prevents unhandled rejections of queries that run in the background. */
  const outcomeOf = (query: Promise<unknown>) =>
    query.then(
      () => 'completed',
      (error: { code?: string; message?: string }) => error.code ?? error.message,
    );

  describe('with a time limit', () => {
    test('the same query can exceed the time limit repeatedly', async () => {
      const store = await open({ queryTimeoutSeconds: 1 });
      for (let i = 0; i < 3; i++)
        await expect(store.query(ENDLESS, {})).rejects.toMatchObject({ code: 'query_timeout' });
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });

    test('a query that exceeds the time limit in the queue fails as unavailable', async () => {
      const store = await open({ queryTimeoutSeconds: 1 });
      const running = outcomeOf(store.query(ENDLESS, {}));
      const waiting = outcomeOf(store.query(QUICK, {}));
      expect(await running).toBe('query_timeout');
      expect(await waiting).toBe('unavailable');
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });
  });

  describe('with an AbortSignal', () => {
    test('an abort right after the call cancels the query', async () => {
      const store = await open({});
      for (let delay = 0; delay < 20; delay++) {
        const leave = new AbortController();
        const query = outcomeOf(store.query(ENDLESS, {}, { signal: leave.signal }));
        // At different times: some aborts arrive between two statements, where an interrupt has no effect.
        for (let i = 0; i < delay; i++) await new Promise(resolve => setImmediate(resolve));
        leave.abort(new Error('the caller left'));
        expect(await query).toBe('the caller left');
      }
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });

    test('an aborted query in the queue makes room for another query', async () => {
      const store = await open({ queryQueueLength: 1 });
      const first = new AbortController();
      const second = new AbortController();
      const running = outcomeOf(store.query(ENDLESS, {}, { signal: first.signal }));
      const waiting = outcomeOf(store.query(QUICK, {}, { signal: second.signal }));
      second.abort(new Error('the second left'));
      expect(await waiting).toBe('the second left');
      const next = outcomeOf(store.query(QUICK, {}));
      first.abort(new Error('the first left'));
      expect(await running).toBe('the first left');
      expect(await next).toBe('completed');
    });
  });

  test('the connection of a failed query is replaced', async () => {
    const store = await open({ queryQueueLength: 0 });
    const failing = { ...QUICK, sql: "select cast('x' as integer)" };
    for (let i = 0; i < 3; i++) {
      expect(await outcomeOf(store.query(failing, {}))).toContain('Conversion Error');
      expect(await outcomeOf(store.query(QUICK, {}))).toBe('completed');
    }
  });

  test('a query that exceeds the memory limit fails as unavailable, and the next one succeeds', async () => {
    const store = await open({ memoryLimit: '50MB' });
    const hungry = { ...QUICK, sql: 'select length(string_agg(range::varchar)) from range(100000000)' };
    expect(await outcomeOf(store.query(hungry, {}))).toBe('unavailable');
    expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
  });

  test('a single allocation above the memory limit, which a damaged length can cause, is not reported as temporary', async () => {
    const store = await open({ memoryLimit: '50MB' });
    const sql = "select length(string_agg(repeat('x', 100000000), '')) from range(2)";
    expect(await outcomeOf(store.query({ ...QUICK, sql }, {}))).toContain('Out of Memory Error');
    expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
  });
});
