// The series of the functions view: what they are called, how they look, and their figure over the whole window.
import type { Row } from '../api/answer.ts';
import type { LegendEntry } from '../chart/legend.ts';
import { formatCount, formatMilliseconds, formatShare } from '../numbers.ts';

const read = (row: Row, key: string) => Number(row[key] ?? 0);

export const COUNT_SERIES = [
  { key: 'error_count', label: 'Errors', color: 'chart-red', read: (row: Row) => read(row, 'error_count') },
  {
    key: 'succeeded',
    label: 'Succeeded',
    color: 'chart-blue',
    read: (row: Row) => read(row, 'count') - read(row, 'error_count'),
  },
] as const;

export const TIME_SERIES = [
  { key: 'min_execution_time', label: 'Min', color: 'chart-gray', faint: true },
  { key: 'avg_execution_time', label: 'Avg', color: 'chart-blue' },
  { key: 'p95_execution_time', label: 'p95', color: 'chart-violet' },
  { key: 'p99_execution_time', label: 'p99', color: 'chart-amber' },
  { key: 'max_execution_time', label: 'Max', color: 'chart-red', faint: true },
] as const;

export function countEntries(rows: readonly Row[]): LegendEntry[] {
  const count = sum(rows, 'count');
  const errors = sum(rows, 'error_count');
  const meanings = {
    error_count: `${formatShare(count === 0 ? 0 : errors / count)} of all · status 400 or higher`,
    succeeded: `of ${formatCount(count)} invocations`,
  };
  const values = { error_count: errors, succeeded: count - errors };
  return COUNT_SERIES.map(({ key, label, color }) => ({
    key,
    label,
    color,
    value: formatCount(values[key]),
    meaning: meanings[key],
  })).reverse();
}

export function timeEntries(rows: readonly Row[]): LegendEntry[] {
  const highest = (key: string) => pick(rows, key, Math.max);
  const figures: Record<string, [number | undefined, string]> = {
    min_execution_time: [pick(rows, 'min_execution_time', Math.min), 'the shortest'],
    avg_execution_time: [weightedMean(rows), 'mean, weighted by invocations'],
    p95_execution_time: [highest('p95_execution_time'), 'peak bucket · 95 % took at most this'],
    p99_execution_time: [highest('p99_execution_time'), 'peak bucket · 99 % took at most this'],
    max_execution_time: [highest('max_execution_time'), 'the longest'],
  };
  return TIME_SERIES.map(({ key, label, color }) => {
    const [value, meaning] = figures[key] ?? [undefined, ''];
    return { key, label, color, value: value === undefined ? '–' : formatMilliseconds(value), meaning };
  });
}

function sum(rows: readonly Row[], key: string): number {
  return rows.reduce((total, row) => total + read(row, key), 0);
}

function pick(
  rows: readonly Row[],
  key: string,
  choose: (...values: number[]) => number,
): number | undefined {
  const values = rows.map(row => row[key]).filter(value => typeof value === 'number');
  return values.length === 0 ? undefined : choose(...values);
}

function weightedMean(rows: readonly Row[]): number | undefined {
  const timed = rows.filter(row => typeof row['avg_execution_time'] === 'number');
  const weight = sum(timed, 'count');
  if (weight === 0) return undefined;
  return (
    timed.reduce((total, row) => total + read(row, 'avg_execution_time') * read(row, 'count'), 0) / weight
  );
}
