import { describe, expect, test } from 'vitest';
import { columnsOf, extractedColumnsOf, LOG_KINDS } from '../../src/domain/log-columns.ts';
import { extractFields } from '../../src/logs/extracted-fields.ts';

describe.each(LOG_KINDS)('the columns of %s', kind => {
  test('allow null in the definition of both stores, or in neither', () => {
    for (const { name, nullable, duckdb, clickhouse } of columnsOf(kind)) {
      expect([name, !duckdb.includes('not null')]).toEqual([name, nullable]);
      expect([name, clickhouse.startsWith('Nullable(')]).toEqual([name, nullable]);
    }
  });

  test('are the fields that intake extracts from the metadata, in the same order', () => {
    const extracted = Object.keys(extractFields(kind, {}, 'a-project'));
    expect(extracted).toEqual(extractedColumnsOf(kind).map(({ name }) => name));
  });
});

test('kinds with different columns have a different number of columns, since a line is recognized by that number', () => {
  const names = new Map<number, string>();
  for (const kind of LOG_KINDS) {
    const columns = columnsOf(kind);
    const list = columns.map(({ name }) => name).join();
    expect(names.get(columns.length) ?? list).toBe(list);
    names.set(columns.length, list);
  }
});
