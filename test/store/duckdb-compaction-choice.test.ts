import { describe, expect, test } from 'vitest';
import { chooseTables } from '../../src/store/duckdb/compaction.ts';
import { ROW_GROUP_ROWS as G, type Part } from '../../src/store/duckdb/parts.ts';
import { micros } from '../support/app.ts';

const NOW = micros('2026-11-14T13:00:00Z');

describe('what is merged', () => {
  const DAY = 24n * 3600n * 1_000_000n;
  const sealed = (number: number, rows: number) => ({
    kind: 'edge' as const,
    number,
    isCompacted: false,
    rows,
  });
  const merged = (number: number, rows: number) => ({ ...sealed(number, rows), isCompacted: true });
  /** Of tables that each reach over so many days and end so many days ago. */
  const chosen = (tables: readonly Part[], ago: number, days = 9) => {
    const timed = tables.map((part, index) => {
      const until = NOW - BigInt(Math.round((ago + (tables.length - 1 - index) * days) * 24)) * (DAY / 24n);
      return { part, since: until - BigInt(Math.round(days * 24)) * (DAY / 24n), until };
    });
    return chooseTables(timed, NOW - 7n * DAY, 4).map(({ number }) => number);
  };

  test.each<[string, Part[], number[]]>([
    ['nothing of three row groups', [sealed(1, 3 * G)], []],
    ['four row groups of one table', [sealed(1, 4 * G)], [1]],
    ['four parts of row groups', [sealed(1, 9), sealed(2, 9), sealed(3, 9), sealed(4, 9)], [1, 2, 3, 4]],
    ['four merged tables', [merged(1, 9), merged(2, 9), merged(3, 9), merged(4, 9)], [1, 2, 3, 4]],
    ['no merged table by itself', [merged(1, 9 * G)], []],
    ['a merged table that is four times as large', [merged(1, 16 * G), sealed(2, 4 * G)], [1, 2]],
    ['none that is larger', [merged(1, 17 * G), sealed(2, 4 * G)], [2]],
    ['one after another', [merged(1, 60 * G), merged(2, 12 * G), sealed(3, 4 * G)], [1, 2, 3]],
    ['no more than a table may have', [merged(1, 125 * G), sealed(2, 100 * G)], [2]],
    ['what lies before newer ones that are few', [sealed(1, 128 * G), merged(2, 4 * G)], [1]],
  ])('of what is older than a week: %s', (_, tables, numbers) => {
    expect(chosen(tables, 8)).toEqual(numbers);
  });

  const four = [1, 2, 3, 4].map(number => sealed(number, 4 * G));
  test.each<[string, number, number, number[]]>([
    ['nothing that reaches over days, but what is older', 0, 4, [1, 2]],
    ['what came in within half a week, and no more', 0, 1, [2, 3, 4]],
    ['each by itself, where two are too much', 0, 2, [4]],
  ])('of the last seven days: %s', (_, ago, days, numbers) => {
    expect(chosen(four, ago, days)).toEqual(numbers);
  });

  test('of a table of old records that came late: nothing newer with it', () => {
    const ago = (days: bigint) => NOW - days * DAY;
    const late = { part: sealed(2, 4 * G), since: ago(1n), until: ago(30n) };
    const recent = { part: sealed(1, 4 * G), since: ago(2n), until: ago(1n) };
    expect(chooseTables([recent, late], ago(7n), 4).map(({ number }) => number)).toEqual([2]);
  });
});
