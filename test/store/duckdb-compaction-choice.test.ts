import { describe, expect, test } from 'vitest';
import { chooseParts } from '../../src/store/duckdb/compaction.ts';
import { ROW_GROUP_ROWS as G, type Part } from '../../src/store/duckdb/parts.ts';
import { micros } from '../support/app.ts';

const NOW = micros('2026-11-14T13:00:00Z');
const DAY = 24n * 3600n * 1_000_000n;
const MIN_RUNS = 4;

describe('the choice of parts for a compaction that needs four sorted runs', () => {
  const flushed = (number: number, rows: number) => ({
    kind: 'edge' as const,
    number,
    isCompacted: false,
    rows,
  });
  const compacted = (number: number, rows: number) => ({ ...flushed(number, rows), isCompacted: true });
  /** The numbers of the chosen parts, if each part covers `days` days and the newest one ends `ago` days ago. */
  const chosenNumbers = (parts: readonly Part[], ago: number, days = 9) => {
    const timed = parts.map((part, index) => {
      const until = NOW - BigInt(Math.round((ago + (parts.length - 1 - index) * days) * 24)) * (DAY / 24n);
      return {
        part,
        since: until - BigInt(Math.round(days * 24)) * (DAY / 24n),
        until,
        largeRecordsBytes: 0,
      };
    });
    return chooseParts(timed, NOW - 7n * DAY, MIN_RUNS).map(({ number }) => number);
  };

  test.each<[string, Part[], number[]]>([
    ['three row groups are too few', [flushed(1, 3 * G)], []],
    ['four row groups of one part are enough', [flushed(1, 4 * G)], [1]],
    [
      'four partial row groups are enough',
      [flushed(1, 9), flushed(2, 9), flushed(3, 9), flushed(4, 9)],
      [1, 2, 3, 4],
    ],
    [
      'four compacted parts are enough',
      [compacted(1, 9), compacted(2, 9), compacted(3, 9), compacted(4, 9)],
      [1, 2, 3, 4],
    ],
    ['a single compacted part is never chosen', [compacted(1, 9 * G)], []],
    [
      'a part with four times the rows of the newer ones is included',
      [compacted(1, 16 * G), flushed(2, 4 * G)],
      [1, 2],
    ],
    ['a part with more than four times the rows is left out', [compacted(1, 17 * G), flushed(2, 4 * G)], [2]],
    [
      'each part is compared with all newer ones together',
      [compacted(1, 60 * G), compacted(2, 12 * G), flushed(3, 4 * G)],
      [1, 2, 3],
    ],
    ['the result has at most 128 row groups', [compacted(1, 125 * G), flushed(2, 100 * G)], [2]],
    ['older parts are chosen if the newer ones are too few', [flushed(1, 128 * G), compacted(2, 4 * G)], [1]],
  ])('older than a week: %s', (_, parts, numbers) => {
    expect(chosenNumbers(parts, 8)).toEqual(numbers);
  });

  const four = [1, 2, 3, 4].map(number => flushed(number, 4 * G));
  test.each<[string, number, number, number[]]>([
    ['parts that cover four days each are left alone, and older ones are chosen', 0, 4, [1, 2]],
    ['parts are merged up to a span of half a week', 0, 1, [2, 3, 4]],
    ['a part is chosen alone if two would cover more than half a week', 0, 2, [4]],
  ])('of the last seven days: %s', (_, ago, days, numbers) => {
    expect(chosenNumbers(four, ago, days)).toEqual(numbers);
  });

  test('a part of old records that arrived late is not merged with a recent part before it', () => {
    const ago = (days: bigint) => NOW - days * DAY;
    const late = { part: flushed(2, 4 * G), since: ago(1n), until: ago(30n), largeRecordsBytes: 0 };
    const recent = { part: flushed(1, 4 * G), since: ago(2n), until: ago(1n), largeRecordsBytes: 0 };
    expect(chooseParts([recent, late], ago(7n), MIN_RUNS).map(({ number }) => number)).toEqual([2]);
  });

  test('at most 64 MiB of large records are merged, and a part with more is left out', () => {
    const MIB = 1024 * 1024;
    const chooseFrom = (...mebibytes: number[]) => {
      const timed = mebibytes.map((size, index) => ({
        part: flushed(index + 1, G),
        since: BigInt(index),
        until: BigInt(index + 1),
        largeRecordsBytes: size * MIB,
      }));
      return chooseParts(timed, NOW, MIN_RUNS).map(({ number }) => number);
    };
    expect(chooseFrom(16, 16, 16, 16, 16)).toEqual([2, 3, 4, 5]);
    expect(chooseFrom(16, 16, 16, 16, 65)).toEqual([1, 2, 3, 4]);
    expect(chooseFrom(17, 16, 16, 16)).toEqual([]);
  });
});
