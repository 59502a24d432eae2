// Copies the records of an embedded store to ClickHouse and verifies the copy. The records are read in time slices with fixed
// boundaries and applied through the outbox, like those of a spool. An interrupted copy reads all slices again, and the outbox skips
// the records that ClickHouse has. The verification compares counts and checksums of every kind and day.
import { LOG_KINDS, type LogColumn, type LogKind, lineColumnsOf } from '../domain/log-columns.ts';
import { lineFieldsOf } from '../domain/log-line.ts';
import type { BoundValues, Cell, Store, StoreName } from './store.ts';

const MICROS_PER_MINUTE = 60_000_000n;
/**
 * Consecutive minutes are joined into slices of up to this many records, and `applyBatchBytes` of the target. A minute that exceeds a
 * limit is a slice by itself. If it has more than twice a limit, it is split into hash buckets.
 */
const SLICE_RECORDS = 20_000;
/** More than the number of days, minutes or lines that any query here returns. */
const NO_ROW_LIMIT = 2 ** 31;

/**
 * ClickHouse may change the last digit of a fraction, so numbers are compared in whole thousandths. The offset moves the
 * boundary between two thousandths away from numbers as they are usually written, such as 1.5 or 2.001.
 */
const ROUNDING_OFFSET = 0.287391;

/** One or more minutes. Times are Unix microseconds. */
interface TimeSlice {
  readonly start: bigint;
  /** Exclusive. */
  readonly end: bigint;
  readonly records: number;
  /** Approximate. */
  readonly bytes: number;
}

/** `source` and `target` describe the records of the day in each store (see readDays), or are `none`. */
export interface DayDifference {
  readonly kind: LogKind;
  readonly day: string;
  readonly source: string;
  readonly target: string;
}

export type OnProgress = (copied: number, total: number) => void;

/**
 * Copies all records. `target` must have a data directory that belongs to this migration: its outbox stores the progress, in
 * sequence numbers that this function assigns. Returns the number of records in `source`.
 */
export async function copyRecords(source: Store, target: Store, onProgress: OnProgress): Promise<number> {
  const slicesOf = new Map<LogKind, readonly TimeSlice[]>();
  for (const kind of LOG_KINDS) slicesOf.set(kind, await findSlices(source, kind, target.applyBatchBytes));
  const total = [...slicesOf.values()].flat().reduce((sum, { records }) => sum + records, 0);
  let copied = 0;
  for (const [kind, slices] of slicesOf) {
    let firstSequence = 0;
    for (const slice of slices) {
      const size = Math.max(slice.records / SLICE_RECORDS, slice.bytes / target.applyBatchBytes);
      const buckets = Math.ceil(size / 2);
      for (let bucket = 0; bucket < buckets; bucket++) {
        const lines = await readLines(source, kind, slice, { bucket, buckets });
        const bytes = Buffer.from(lines.map(([line]) => `${line}\n`).join(''));
        if (lines.length > 0) await target.apply({ kind, firstSequence, count: lines.length, lines: bytes });
        firstSequence += lines.length;
        copied += lines.length;
        onProgress(copied, total);
      }
    }
  }
  return total;
}

/** Returns every kind and day whose count or checksum differs. */
export async function compareDays(source: Store, target: Store): Promise<DayDifference[]> {
  const differences: DayDifference[] = [];
  for (const kind of LOG_KINDS) {
    const [sourceDays, targetDays] = [await readDays(source, kind), await readDays(target, kind)];
    for (const day of [...new Set([...sourceDays.keys(), ...targetDays.keys()])].sort()) {
      const [inSource, inTarget] = [sourceDays.get(day) ?? 'none', targetDays.get(day) ?? 'none'];
      if (inSource !== inTarget) differences.push({ kind, day, source: inSource, target: inTarget });
    }
  }
  return differences;
}

async function findSlices(source: Store, kind: LogKind, maxBytes: number): Promise<TimeSlice[]> {
  const minutes = await select(
    source,
    `select epoch_us(time_bucket(to_seconds(60), timestamp)) as minute, count(*) as records,
      sum(strlen(id) + strlen(project) + strlen(event_message) + strlen(metadata))::bigint as bytes
    from ${kind}_logs group by minute order by minute`,
    ['minute', 'records', 'bytes'],
  );
  const slices: TimeSlice[] = [];
  for (const [minute, records, bytes] of minutes.map(row => row.map(Number))) {
    const start = BigInt(minute ?? 0);
    const next = { start, end: start + MICROS_PER_MINUTE, records: records ?? 0, bytes: bytes ?? 0 };
    const last = slices.at(-1);
    const joined = last && {
      ...{ start: last.start, end: next.end },
      ...{ records: last.records + next.records, bytes: last.bytes + next.bytes },
    };
    if (joined !== undefined && joined.records <= SLICE_RECORDS && joined.bytes <= maxBytes)
      slices[slices.length - 1] = joined;
    else slices.push(next);
  }
  return slices;
}

/** The records of a slice, or of one hash bucket of it, as log lines (log-line.ts). The flag j means that all texts are JSON strings. */
function readLines(
  source: Store,
  kind: LogKind,
  { start, end }: TimeSlice,
  { bucket, buckets }: { readonly bucket: number; readonly buckets: number },
): Promise<readonly (readonly Cell[])[]> {
  const fields = lineFieldsOf(kind).map(({ name, type, nullable }) => {
    if (type === 'timestamp') return `epoch_us(${name})`;
    return nullable ? `coalesce(to_json(${name})::varchar, chr(30))` : `to_json(${name})`; // chr(30) is NULL_MARKER
  });
  return select(
    source,
    `select concat_ws(chr(31), 'j', ${fields.join(', ')}, metadata) as line from ${kind}_logs
    where timestamp >= $start and timestamp < $end and md5_number_lower(id) % $buckets = $bucket
    order by project, timestamp, line`,
    ['line'],
    {
      start: { type: 'timestamp', value: start },
      end: { type: 'timestamp', value: end },
      bucket: { type: 'integer', value: bucket },
      buckets: { type: 'integer', value: buckets },
    },
  );
}

/**
 * Returns a description of the records of each day: their number, and the sums of the low and of the high 32 bits of their hashes,
 * which do not depend on their order. If both stores have the same records, the descriptions are equal.
 */
async function readDays(store: Store, kind: LogKind): Promise<Map<string, string>> {
  const fields = lineColumnsOf(kind).map(column => toText(column, store.name));
  const sql =
    store.name === 'duckdb'
      ? `select day, count(*) as records, sum(hash & 4294967295) as low, sum(hash >> 32) as high from (
          select strftime(timestamp, '%Y-%m-%d') as day, md5_number_lower(concat(${fields.join(', chr(31), ')})) as hash
          from ${kind}_logs) group by day`
      : `select day, count() as records, sum(bitAnd(hash, 4294967295)) as low, sum(bitShiftRight(hash, 32)) as high from (
          select toString(toDate(toDateTime(intDiv(timestamp, 1000000), 'UTC'))) as day,
            reinterpretAsUInt64(substring(MD5(concat(${fields.join(', char(31), ')})), 9, 8)) as hash
          from ${kind}_logs) group by day`;
  const rows = await select(store, sql, ['day', 'records', 'low', 'high']);
  return new Map(
    rows.map(([day, count, low, high]) => [String(day), `${count} records, checksum ${low}-${high}`]),
  );
}

/** SQL for a value of a log line as a text that is the same in both stores. */
function toText({ name, type, nullable }: LogColumn, store: StoreName): string {
  const thousandths = `floor(${name} * 1000 + ${ROUNDING_OFFSET})`;
  if (store === 'clickhouse') {
    const text = `toString(${type === 'number' ? `toInt64(${thousandths})` : name})`;
    return nullable ? `ifNull(${text}, 'null')` : text;
  }
  const values = { timestamp: `epoch_us(${name})`, number: `${thousandths}::bigint` };
  const text = `(${type === 'timestamp' || type === 'number' ? values[type] : name})::varchar`;
  return nullable ? `coalesce(${text}, 'null')` : text;
}

/** Integers may be returned as texts, which is exact enough here. */
async function select(
  store: Store,
  sql: string,
  names: readonly string[],
  values: BoundValues = {},
): Promise<readonly (readonly Cell[])[]> {
  const columns = names.map(name => ({ name, type: 'text' as const }));
  return (await store.query({ sql, columns, maxRows: NO_ROW_LIMIT }, values, { label: 'migrate' })).rows;
}
