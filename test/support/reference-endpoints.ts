// Reference implementation of the three built-in endpoints on an array of records. Written independently of the SQL, to be
// obviously correct and not fast. The tests compare it with the results of the store.
import type { EdgeFields, FunctionEdgeFields, LogRecord } from '../../src/domain/log-record.ts';

const SECOND = 1_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;
const DAY = 24n * HOUR;

/** Truncates Unix microseconds to a bucket in UTC. All times of the tests are after 1970. */
export function truncate(micros: bigint, bucket: bigint): bigint {
  return micros - (micros % bucket);
}

export interface Percentiles {
  readonly lowest: number;
  readonly highest: number;
}

/**
 * The allowed range of an approximate percentile: one percentile rank around the exact one, extended to the nearest
 * records. `percent` is 95 or 99.
 */
export function percentileBounds(values: readonly number[], percent: number): Percentiles {
  const sorted = [...values].sort((a, b) => a - b);
  const last = sorted.length - 1;
  const below = Math.floor(((percent - 1) / 100) * last);
  const above = Math.ceil((Math.min(percent + 1, 100) / 100) * last);
  return { lowest: sorted[below] ?? Number.NaN, highest: sorted[above] ?? Number.NaN };
}

export interface PlainStats {
  readonly timestamp: number;
  readonly times: readonly number[];
  readonly count: number;
  readonly error_count: number;
}

const STATS_INTERVALS: ReadonlyMap<string, { window: bigint; bucket: bigint }> = new Map([
  ['5min', { window: 5n * MINUTE, bucket: SECOND }],
  ['15min', { window: 15n * MINUTE, bucket: MINUTE }],
  ['1hr', { window: HOUR, bucket: MINUTE }],
  ['1day', { window: DAY, bucket: HOUR }],
  ['7day', { window: 7n * DAY, bucket: DAY }],
]);

/** functions.invocation-stats, with all execution times of a row instead of the statistics on them. */
export function readInvocationStats(
  records: readonly LogRecord[],
  parameters: { project: string; function_id?: string; interval?: string },
  now: bigint,
): PlainStats[] {
  const interval = STATS_INTERVALS.get(parameters.interval ?? '') ?? STATS_INTERVALS.get('1day');
  if (interval === undefined) throw new Error('the default interval 1day is missing');
  const first = truncate(now - interval.window, interval.bucket);
  const afterLast = truncate(now, interval.bucket) + interval.bucket;
  const selected = records.filter(record => {
    const at = BigInt(record.timestampMicros);
    const { function_id } = record.extracted as FunctionEdgeFields;
    const functionId = parameters.function_id ?? '';
    return (
      record.project === parameters.project &&
      (functionId === '' || function_id === functionId) &&
      at >= first &&
      at < afterLast
    );
  });
  return groupByBucket(selected, interval.bucket).map(([start, members]) => {
    const fields = members.map(({ extracted }) => extracted as FunctionEdgeFields);
    return {
      timestamp: Number(start),
      times: fields.map(field => field.execution_time_ms).filter(time => time !== null),
      count: fields.length,
      error_count: fields.filter(({ status_code }) => status_code !== null && status_code >= 400).length,
    };
  });
}

const COUNT_INTERVALS = {
  minutely: { window: 60n * MINUTE, bucket: MINUTE },
  hourly: { window: HOUR, bucket: HOUR },
  daily: { window: 7n * DAY, bucket: DAY },
} as const;

/** usage.api-counts. The pattern must have the same meaning in RE2 and in JavaScript. */
export function readApiCounts(
  records: readonly LogRecord[],
  parameters: { project: string; interval: keyof typeof COUNT_INTERVALS },
  now: bigint,
): Record<string, unknown>[] {
  const { window, bucket } = COUNT_INTERVALS[parameters.interval];
  const pattern = new RegExp(parameters.project, 'u');
  const selected = records.filter(record => {
    const at = BigInt(record.timestampMicros);
    return at >= now - window && at <= now && pattern.test((record.extracted as EdgeFields).url);
  });
  return groupByBucket(selected, bucket).map(([start, members]) => {
    const countPaths = (text: string) =>
      members.filter(({ extracted }) => (extracted as EdgeFields).path.includes(text)).length;
    return {
      timestamp: new Date(Number(start / 1000n)).toISOString().replace('.000Z', 'Z'),
      total_rest_requests: countPaths('/rest'),
      total_storage_requests: countPaths('/storage'),
      total_auth_requests: countPaths('/auth'),
      total_realtime_requests: countPaths('/realtime'),
    };
  });
}

const RETENTION_DAYS: ReadonlyMap<string, bigint> = new Map([
  ['FREE', 1n],
  ['PRO', 7n],
  ['PAYG', 90n],
  ['ENTERPRISE', 90n],
]);

/** logs.all, with start and end in Unix microseconds. */
export function readLogsAll(
  records: readonly LogRecord[],
  parameters: { project: string; project_tier?: string; start?: bigint; end?: bigint },
  now: bigint,
): Record<string, unknown>[] {
  const oldest = now - (RETENTION_DAYS.get(parameters.project_tier ?? '') ?? 1n) * DAY;
  return records
    .filter(record => {
      const at = BigInt(record.timestampMicros);
      return (
        record.project === parameters.project &&
        at > oldest &&
        (parameters.start === undefined || at > parameters.start) &&
        (parameters.end === undefined || at <= parameters.end)
      );
    })
    .sort((a, b) => b.timestampMicros - a.timestampMicros || compareText(a.id, b.id))
    .slice(0, 100)
    .map(record => ({
      id: record.id,
      timestamp: record.timestampMicros,
      event_message: record.eventMessage,
      metadata: JSON.parse(record.metadata),
    }));
}

/** Compares by code point, as UTF-8 bytes do. JavaScript compares strings by UTF-16 code unit. */
function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function groupByBucket(records: readonly LogRecord[], bucket: bigint): [bigint, LogRecord[]][] {
  const groups = new Map<bigint, LogRecord[]>();
  for (const record of records) {
    const start = truncate(BigInt(record.timestampMicros), bucket);
    groups.set(start, [...(groups.get(start) ?? []), record]);
  }
  return [...groups].sort(([a], [b]) => Number(a - b));
}
