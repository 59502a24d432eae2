import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { SpooledLines, Store } from '../../src/store/store.ts';
import { testStoreOptions } from '../support/app.ts';
import { createDatabase } from '../support/clickhouse.ts';
import { record } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';
import { runSql } from './run-sql.ts';

const AT = '2026-11-14T12:34:56.789012Z';

let clickhouse: ClickHouseUrl;
let dataDirectory: string;
let store: Store;
let rejected: string[];

beforeEach(async () => {
  clickhouse = await createDatabase();
  dataDirectory = createDataDirectory();
  rejected = [];
  const options = { ...testStoreOptions(dataDirectory), clickhouse };
  store = await openStore(options, { recordRejected: ({ line }) => rejected.push(line) });
});
afterEach(async () => {
  await store.close();
  removeDataDirectory(dataDirectory);
  await runSql(clickhouse, `drop database ${clickhouse.database}`);
});

const spooled = (...messages: readonly string[]): SpooledLines => ({
  ...toLogLines(
    'auth',
    messages.map((message, i) => record({ id: `n${i}`, at: AT, message })),
  ),
  firstSequence: 0,
});
const numbers = (count: number) => Array.from({ length: count }, (_, i) => String(i));
/** The number of rows, and of different ids. */
const countRows = async () => (await runSql(clickhouse, 'select count(), uniqExact(id) from auth_logs'))[0];

test('a record that ClickHouse rejects is reported, and the other records of its block are stored', async () => {
  const records = spooled(...numbers(9));
  const text = Buffer.from(records.lines).toString('utf8').replace('\x1fn0\x1f', '\x1fn0\x1fx');
  await store.apply({ ...records, lines: Buffer.from(text) });
  expect(rejected).toHaveLength(1);
  expect(rejected[0]).toContain('\x1fn0\x1fx');
  expect(await countRows()).toEqual([8, 8]);
  expect(store.flushedUpTo('auth')).toBe(9);
});

test.each(['no number', ': (at row 1)\n'])(
  'a materialized view that fails for one record (%j) causes no rejected and no duplicate record',
  async message => {
    await runSql(clickhouse, 'create table counted (n Int64) engine = MergeTree order by n');
    await runSql(
      clickhouse,
      'create materialized view counting to counted as select toInt64(event_message) as n from auth_logs',
    );
    const records = spooled(...numbers(15), message);
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(store.apply(records)).rejects.toThrow(/cannot insert records.*Cannot parse string/s);
    expect(store.flushedUpTo('auth')).toBe(0);
    await runSql(clickhouse, 'drop table counting');
    await store.apply(records);
    expect(rejected).toEqual([]);
    expect(await countRows()).toEqual([16, 16]);
  },
);

describe('a table with a dropped column', () => {
  beforeEach(async () => {
    await runSql(clickhouse, 'alter table auth_logs drop index text_index'); // it reads the column
    await runSql(clickhouse, 'alter table auth_logs drop column event_message');
  });

  test('fails the preflight, which names the column', async () => {
    expect(await store.preflight?.()).toMatch(/cannot read from auth_logs.*event_message/);
  });

  test('causes no rejected record: records wait until the column is back', async () => {
    const records = spooled(...numbers(5));
    await expect(store.apply(records)).rejects.toThrow(/Unknown field.*event_message/);
    expect(store.flushedUpTo('auth')).toBe(0);
    await runSql(clickhouse, 'alter table auth_logs add column event_message String');
    await store.apply(records);
    expect(rejected).toEqual([]);
    expect(await countRows()).toEqual([5, 5]);
  });
});
