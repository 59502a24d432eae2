import { describe, expect, test } from 'vitest';
import { columnsOf, extractedColumnsOf, LOG_KINDS, lineColumnsOf } from '../../src/domain/log-columns.ts';
import { extractFields } from '../../src/logs/record.ts';

describe.each(LOG_KINDS)('the columns of %s', kind => {
  test('allow null in the definition of both stores, or in neither', () => {
    for (const { name, nullable, duckdb, clickhouse } of columnsOf(kind)) {
      expect([name, !duckdb.includes('not null')]).toEqual([name, nullable]);
      expect([name, /^(LowCardinality\()?Nullable\(/.test(clickhouse)]).toEqual([name, nullable]);
    }
  });

  test('begin with those of a log line, in the same order', () => {
    const names = (columns: readonly { name: string }[]) => columns.map(({ name }) => name);
    const lineColumns = names(lineColumnsOf(kind));
    const [first, others] = [
      names(columnsOf(kind)).slice(0, lineColumns.length),
      columnsOf(kind).slice(lineColumns.length),
    ];
    expect(first).toEqual(lineColumns);
    for (const name of names(others)) expect(name).toMatch(/^field_/);
  });

  test('are the fields that intake extracts from the metadata, in the same order', () => {
    const extracted = Object.keys(extractFields(kind, {}, 'a-project'));
    expect(extracted).toEqual(extractedColumnsOf(kind).map(({ name }) => name));
  });
});

test('kinds whose lines have different columns have a different number of them, since a line is recognized by that number', () => {
  const names = new Map<number, string>();
  for (const kind of LOG_KINDS) {
    const columns = lineColumnsOf(kind);
    const list = columns.map(({ name }) => name).join();
    expect(names.get(columns.length) ?? list).toBe(list);
    names.set(columns.length, list);
  }
});
