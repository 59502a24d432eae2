// Calculations with the rows of functions.invocation-stats: sums, means and merged buckets.
import type { Row } from '../api/client.ts';

/** With more buckets than this, bars and lines are too narrow to read, and buckets are merged. */
export const MAX_BUCKETS = 150;
const MERGE_FACTORS = [1, 2, 5, 10, 15, 30, 60];

/** The length of the merged buckets. The factors divide a minute, so merged buckets start at round times. */
export function chooseMergedSeconds(bucketSeconds: number, bucketCount: number): number {
  const factor = MERGE_FACTORS.find(each => bucketCount / each <= MAX_BUCKETS) ?? 60;
  return bucketSeconds * factor;
}

/** Percentiles of merged buckets are unknown, so merged rows have none. */
export function mergeRows(rows: readonly Row[], mergedSeconds: number): Row[] {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const start = floorTo(readStart(row), mergedSeconds);
    groups.set(start, [...(groups.get(start) ?? []), row]);
  }
  return [...groups].map(([start, group]) => ({
    timestamp: start * 1e6,
    count: sum(group, 'count'),
    error_count: sum(group, 'error_count'),
    min_execution_time: findExtreme(group, 'min_execution_time', Math.min) ?? null,
    avg_execution_time: weightedMean(group) ?? null,
    max_execution_time: findExtreme(group, 'max_execution_time', Math.max) ?? null,
  }));
}

/** The start of a row's bucket in Unix seconds. */
export function readStart(row: Row): number {
  return Number(row['timestamp']) / 1e6;
}

export function floorTo(seconds: number, step: number): number {
  return Math.floor(seconds / step) * step;
}

/** Undefined if no row has a value. */
export function findExtreme(
  rows: readonly Row[],
  key: string,
  choose: (...values: number[]) => number,
): number | undefined {
  const values = rows.map(row => row[key]).filter(value => typeof value === 'number');
  return values.length === 0 ? undefined : choose(...values);
}

/** The mean execution time of all invocations. Undefined if no row has an execution time. */
export function weightedMean(rows: readonly Row[]): number | undefined {
  const rowsWithValue = rows.filter(row => typeof row['avg_execution_time'] === 'number');
  const weight = sum(rowsWithValue, 'count');
  const total = rowsWithValue.reduce(
    (subtotal, row) => subtotal + readNumber(row, 'avg_execution_time') * readNumber(row, 'count'),
    0,
  );
  return weight === 0 ? undefined : total / weight;
}

export function sum(rows: readonly Row[], key: string): number {
  return rows.reduce((total, row) => total + readNumber(row, key), 0);
}

/** 0 if there is no row or no value. */
export function readNumber(row: Row | undefined, key: string): number {
  return Number(row?.[key] ?? 0);
}
