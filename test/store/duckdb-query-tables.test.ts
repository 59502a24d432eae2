import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { micros, NOW } from '../support/app.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';
import { ENDLESS, savedQuery } from '../support/store.ts';

const HOUR = 3_600_000_000n;
const START = micros(NOW) - 10n * HOUR;

let embedded: EmbeddedStore;
beforeEach(async () => {
  embedded = await EmbeddedStore.open();
});
afterEach(() => embedded.remove());

describe('the range of a query', () => {
  /** These queries have no condition of their own, so they return all records of the tables that were planned. */
  const idsIn = async (start?: bigint, end?: bigint, kind = 'edge') =>
    (await embedded.query(`select id from ${kind}_logs order by id`, { range: { start, end } })).rows.flat();

  test('only parts that overlap the range, both ends included, are part of the plan', async () => {
    for (let i = 0n; i < 3n; i++) await embedded.flush(embedded.createRecords(2, START + i * HOUR));
    const end = START + HOUR + 1_000_000n; // the newest record of the second part
    expect(await idsIn()).toHaveLength(6);
    expect(await idsIn(START + HOUR, end)).toEqual(['n2', 'n3']);
    expect(await idsIn(end, end)).toEqual(['n2', 'n3']);
    expect(await idsIn(end + 1n, START + 2n * HOUR - 1n)).toEqual([]);
    expect(await idsIn(undefined, START + HOUR)).toEqual(['n0', 'n1', 'n2', 'n3']);
    expect(await idsIn(end, undefined)).toEqual(['n2', 'n3', 'n4', 'n5']);
  });

  test('memtables are part of every plan, because their span changes', async () => {
    await embedded.apply(embedded.createRecords(1));
    expect(await idsIn(0n, 0n)).toEqual(['n0']);
  });

  test('a kind without records is an empty table', async () => {
    expect(await idsIn(undefined, undefined, 'auth')).toEqual([]);
  });
});

test.each([
  ['a comment before it', '-- edge_logs\n/* with */ select count(*) from edge_logs'],
  ['a WITH of its own', 'with a as (from edge_logs) select count(*) from a'],
  [
    'a recursive WITH',
    'with recursive a as (select 1 as n union all select n + 1 from a where n < 2) select count(*) from a',
  ],
  [
    'a recursive WITH after a comment',
    'with /* a */ recursive -- b\n a as (select 1 as n union all select n + 1 from a where n < 2) select count(*) from a',
  ],
  [
    'a WITH before many comments',
    `with ${'/* a * comment **/ '.repeat(40)} a as (from edge_logs) select count(*) from a`,
  ],
  ['another case', 'WITH a AS (FROM Edge_Logs) SELECT count(*) FROM a'],
  ['several kinds', 'select (select count(*) from edge_logs) + (select count(*) from auth_logs)'],
  ['no log table', 'select 2'],
  ['WITH and no log table', 'with a as (select 2) from a'],
])('a query with %s reads the tables of its kinds', async (_, sql) => {
  await embedded.flush(embedded.createRecords(1));
  await embedded.apply(embedded.createRecords(1));
  expect((await embedded.store.query(savedQuery(sql, ['integer']), {})).rows).toEqual([[2]]);
});

describe('a running query', () => {
  const controller = () => new AbortController();
  /** Reads edge_logs until it is aborted. */
  const startEndless = async () => {
    const abort = controller();
    const sql = `${ENDLESS.sql}, (select count(id) from edge_logs)`;
    const ended = embedded.store
      .query(savedQuery(sql, ['number']), {}, { signal: abort.signal })
      .catch(() => 'aborted');
    await expect.poll(() => embedded.store.readStatistics().runningQueries).toBe(1);
    return {
      async stop() {
        abort.abort(new Error('enough'));
        expect(await ended).toBe('aborted');
      },
    };
  };

  test('keeps the files of the parts that it reads, and they are deleted when it has ended', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      for (let i = 0; i < 16; i++) await embedded.flush(embedded.createRecords(2));
      const before = embedded.files;
      const query = await startEndless();
      expect(await embedded.store.maintain('compact')).toBeGreaterThan(0);
      const [merged] = embedded.parts.map(({ file }) => file);
      expect(embedded.files).toEqual([...before, merged]);
      expect(await embedded.ids()).toHaveLength(32);
      await query.stop();
      await expect.poll(() => embedded.files).toEqual([merged]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('delays an erasure, which resolves when no file has text of the project', async () => {
    await embedded.flush(embedded.createRecords(6));
    const [old] = embedded.files;
    const query = await startEndless();
    let isErased = false;
    const erasing = embedded.store.eraseProject({ project: 'p0' }).then(erased => {
      isErased = true;
      return erased;
    });
    await expect.poll(() => embedded.parts.map(({ records }) => records)).toEqual([4]);
    await expect.poll(() => embedded.ids()).toHaveLength(4); // other queries do not see erased records
    expect([isErased, embedded.files.includes(old ?? '')]).toEqual([false, true]);
    await query.stop();
    expect(await erasing).toBe(2);
    expect(embedded.files).toEqual(embedded.parts.map(({ file }) => file));
  });

  test('keeps the memtable that it reads during a flush', async () => {
    await embedded.apply(embedded.createRecords(3));
    const query = await startEndless();
    await embedded.store.flush(['edge']);
    expect(await embedded.ids()).toHaveLength(3);
    await query.stop();
  });
});
