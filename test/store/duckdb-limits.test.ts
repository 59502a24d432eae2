import { afterEach, describe, expect, test } from 'vitest';
import type { StoreOptions } from '../../src/store/open-store.ts';
import { ENDLESS, openTestStore, QUICK, type TestStore } from '../support/store.ts';

// A store that serves a second query on its one connection has cancelled the first one: ENDLESS takes hours.
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

  /** The outcome of a query that is not waited for, so that its refusal never goes unheard. */
  const outcomeOf = (query: Promise<unknown>) =>
    query.then(
      () => 'request_completed',
      (error: { code?: string; message?: string }) => error.code ?? error.message,
    );

  describe('time limit', () => {
    test('a query past it is cancelled in DuckDB, and its connection serves again', async () => {
      const store = await open({ queryTimeoutSeconds: 1 });
      await expect(store.query(ENDLESS, {})).rejects.toMatchObject({
        code: 'query_timeout',
        message: expect.stringContaining('1 s'),
      });
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });

    test('the same query can run into it again and again', async () => {
      const store = await open({ queryTimeoutSeconds: 1 });
      for (let i = 0; i < 3; i++)
        await expect(store.query(ENDLESS, {})).rejects.toMatchObject({ code: 'query_timeout' });
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });

    test('a query that waits past it for its turn is unavailable', async () => {
      const store = await open({ queryTimeoutSeconds: 1 });
      const running = outcomeOf(store.query(ENDLESS, {}));
      const waiting = outcomeOf(store.query(QUICK, {}));
      expect(await running).toBe('query_timeout');
      expect(await waiting).toBe('unavailable');
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });
  });

  describe('abort', () => {
    test('cancels the query in DuckDB, and gives the reason back', async () => {
      const store = await open({});
      const leave = new AbortController();
      const query = store.query(ENDLESS, {}, { signal: leave.signal });
      setTimeout(() => leave.abort(new Error('the caller left')), 100);
      await expect(query).rejects.toThrow('the caller left');
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });

    test('right after the call cancels it too', async () => {
      const store = await open({});
      for (let turns = 0; turns < 20; turns++) {
        const leave = new AbortController();
        const query = outcomeOf(store.query(ENDLESS, {}, { signal: leave.signal }));
        // After so many turns of the event loop: now and then the abort falls between two statements.
        for (let i = 0; i < turns; i++) await new Promise(resolve => setImmediate(resolve));
        leave.abort(new Error('the caller left'));
        expect(await query).toBe('the caller left');
      }
      expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
    });

    test('before the call runs nothing', async () => {
      const store = await open({});
      await expect(store.query(QUICK, {}, { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow(
        'gone',
      );
    });

    test('while waiting gives the place in the queue free', async () => {
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
      expect(await next).toBe('request_completed');
    });
  });

  describe('concurrency', () => {
    test('queries beyond it wait; beyond the queue they are unavailable', async () => {
      const store = await open({ queryConcurrency: 2, queryQueueLength: 2 });
      const leave = new AbortController();
      const running = [0, 1].map(() => outcomeOf(store.query(ENDLESS, {}, { signal: leave.signal })));
      const waiting = [0, 1].map(() => outcomeOf(store.query(QUICK, {})));
      expect(await outcomeOf(store.query(QUICK, {}))).toBe('unavailable');
      leave.abort(new Error('left'));
      expect(await Promise.all(running)).toEqual(['left', 'left']);
      expect(await Promise.all(waiting)).toEqual(['request_completed', 'request_completed']);
      expect(await outcomeOf(store.query(QUICK, {}))).toBe('request_completed');
    });

    test('with no queue, one past the connections is unavailable at once', async () => {
      const store = await open({ queryQueueLength: 0 });
      const leave = new AbortController();
      const running = outcomeOf(store.query(ENDLESS, {}, { signal: leave.signal }));
      expect(await outcomeOf(store.query(QUICK, {}))).toBe('unavailable');
      leave.abort(new Error('left'));
      expect(await running).toBe('left');
    });

    test('many short queries all get their turn, in the order they came', async () => {
      const store = await open({ queryQueueLength: 100 });
      const order: number[] = [];
      await Promise.all(
        Array.from({ length: 50 }, (_, i) => store.query(QUICK, {}).then(() => order.push(i))),
      );
      expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
    });

    test('a failed query gives its connection back', async () => {
      const store = await open({ queryQueueLength: 0 });
      const failing = { ...QUICK, sql: "select cast('x' as integer)" };
      expect(await outcomeOf(store.query(failing, {}))).toContain('Conversion Error');
      // The connection serves again after its rollback, which the failed query does not wait for.
      let outcome = await outcomeOf(store.query(QUICK, {}));
      for (let i = 0; outcome === 'unavailable' && i < 1000; i++) {
        await new Promise(resolve => setTimeout(resolve, 5));
        outcome = await outcomeOf(store.query(QUICK, {}));
      }
      expect(outcome).toBe('request_completed');
    });
  });

  test('a query over the memory limit is unavailable, and the next one is served', async () => {
    const store = await open({ memoryLimit: '50MB' });
    const hungry = { ...QUICK, sql: 'select length(string_agg(range::varchar)) from range(100000000)' };
    expect(await outcomeOf(store.query(hungry, {}))).toBe('unavailable');
    expect((await store.query(QUICK, {})).rows).toEqual([[42]]);
  });
});
