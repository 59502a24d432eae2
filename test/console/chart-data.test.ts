import { describe, expect, test } from 'vitest';
import { findIncompleteReason, groupByMagnitude } from '../../console/chart/chart-data.ts';

describe('why a bucket is incomplete', () => {
  const HOUR_MS = 3_600_000;
  const ranAtMs = 10.5 * HOUR_MS;
  /** The reason of the bucket from 9:00 to 10:00 (index 0) or from 10:00 to 11:00 (index 1). */
  const findReason = (index: number, rangeStartMs: number, rangeEndMs: number) =>
    findIncompleteReason(
      { starts: [9 * 3600, 10 * 3600], bucketSeconds: 3600, rangeStartMs, rangeEndMs, ranAtMs, series: [] },
      index,
    );

  test('a bucket that has not ended when the query runs is in progress', () => {
    expect(findReason(1, 0, ranAtMs)).toBe('in progress');
  });

  test('a bucket that the start or the end of the range cuts is partial', () => {
    expect(findReason(0, 9.1 * HOUR_MS, ranAtMs)).toBe('partial');
    expect(findReason(0, 0, 9.9 * HOUR_MS)).toBe('partial');
    expect(findReason(1, 0, 10.1 * HOUR_MS)).toBe('partial');
  });

  test('a bucket within the range is complete', () => {
    expect(findReason(0, 9 * HOUR_MS, 10 * HOUR_MS)).toBeUndefined();
  });
});

describe('lines that share a chart', () => {
  /** The maxima of the lines of each chart. */
  const group = (...maxima: number[]) =>
    groupByMagnitude(maxima.map(max => ({ max, values: [null, -max, 0] }))).map(lines =>
      lines.map(({ max }) => max),
    );

  test('the maxima of all lines of a chart differ by less than a factor of 20', () => {
    expect(group(100, 10, 1)).toEqual([[100, 10], [1]]);
    expect(group(10, 100, 1)).toEqual([[10, 100], [1]]);
    expect(group(10, 1, 100)).toEqual([[10, 1], [100]]);
  });

  test('a line of zeros shares the first chart, and does not bring lines of different size together', () => {
    expect(group(0, 1000, 1)).toEqual([[0, 1000], [1]]);
    expect(group(1000, 0, 1)).toEqual([[1000, 0], [1]]);
    expect(group(0, 0)).toEqual([[0, 0]]);
  });
});
