import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { SpooledLines, Store } from '../../src/store/store.ts';
import { testStoreOptions } from '../support/app.ts';
import { makeDatabase } from '../support/clickhouse.ts';
import { record } from '../support/record.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';
import { ask } from './ask.ts';

const AT = '2026-11-14T12:34:56.789012Z';

let address: ClickHouseUrl;
let dataDirectory: string;
let store: Store;
let refused: string[];

beforeEach(async () => {
  address = await makeDatabase();
  dataDirectory = makeDataFolder();
  refused = [];
  const options = { ...testStoreOptions(dataDirectory), clickhouse: address };
  store = await openStore(options, { recordRejected: ({ line }) => refused.push(line) });
});
afterEach(async () => {
  await store.close();
  removeDataFolder(dataDirectory);
  await ask(address, `drop database ${address.database}`);
});

const spooled = (...messages: readonly string[]): SpooledLines => ({
  ...toLogLines(
    'auth',
    messages.map((message, i) => record({ id: `n${i}`, at: AT, message })),
  ),
  firstSequence: 0,
});
const numbers = (count: number) => Array.from({ length: count }, (_, i) => String(i));
const counts = async () => (await ask(address, 'select count(), uniqExact(id) from auth_logs'))[0];

test('a record that ClickHouse refuses is told of, and the others of its block are kept', async () => {
  const records = spooled(...numbers(9));
  const text = Buffer.from(records.lines).toString('utf8').replace('\x1fn0\x1f', '\x1fn0\x1fx');
  await store.apply({ ...records, lines: Buffer.from(text) });
  expect(refused).toHaveLength(1);
  expect(refused[0]).toContain('\x1fn0\x1fx');
  expect(await counts()).toEqual([8, 8]);
  expect(store.flushedUpTo('auth')).toBe(9);
});

test.each(['no number', ': (at row 1)\n'])(
  "a view of the operator's that fails for one record (%j) refuses none and doubles none",
  async message => {
    await ask(address, 'create table counted (n Int64) engine = MergeTree order by n');
    await ask(
      address,
      'create materialized view counting to counted as select toInt64(event_message) as n from auth_logs',
    );
    const records = spooled(...numbers(15), message);
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(store.apply(records)).rejects.toThrow(/could not be inserted.*Cannot parse string/s);
    expect(store.flushedUpTo('auth')).toBe(0);
    await ask(address, 'drop table counting');
    await store.apply(records);
    expect(refused).toEqual([]);
    expect(await counts()).toEqual([16, 16]);
  },
);

describe('a column that was dropped', () => {
  beforeEach(() => ask(address, 'alter table auth_logs drop column event_message'));

  test('is named at start', async () => {
    expect(await store.preflight?.()).toMatch(/cannot be read from \(auth_logs\).*event_message/);
  });

  test('refuses no record: they wait until it is there again', async () => {
    const records = spooled(...numbers(5));
    await expect(store.apply(records)).rejects.toThrow(/Unknown field.*event_message/);
    expect(store.flushedUpTo('auth')).toBe(0);
    await ask(address, 'alter table auth_logs add column event_message String');
    await store.apply(records);
    expect(refused).toEqual([]);
    expect(await counts()).toEqual([5, 5]);
  });
});
