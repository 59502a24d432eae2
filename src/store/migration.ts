// Copies the records of an embedded store to ClickHouse and verifies the copy. The records are read in time slices with
// fixed boundaries and applied through the outbox, like those of a spool, so that an interrupted copy resumes without
// duplicates. The verification compares counts and checksums of every kind and day.
import { readFileSync } from 'node:fs';
import { LOG_KINDS, type LogColumn, type LogKind, lineColumnsOf } from '../domain/log-columns.ts';
import { lineFieldsOf } from '../domain/log-line.ts';
import type { BoundValues, Cell, ColumnType, Store, StoreName } from './store.ts';

const MICROS_PER_MINUTE = 60_000_000n;
/**
 * Consecutive minutes are joined into slices. The limits of a slice are this many records and `applyBatchBytes` of the target. A
 * minute that exceeds a limit is a slice by itself. If it has more than twice a limit, it is split into hash buckets.
 */
const SLICE_RECORDS = 20_000;
/** More than the number of days, minutes or lines that any query here returns. */
const NO_ROW_LIMIT = 2 ** 31;

/**
 * ClickHouse may change the last digit of a fraction, so numbers are compared in whole thousandths. The offset moves the
 * boundary between two thousandths away from numbers as they are usually written, such as 1.5 or 2.001.
 */
const ROUNDING_OFFSET = 0.287391;

/** Records of a time range (Unix microseconds, `end` is exclusive), or of one hash bucket of it if the range has too many. */
interface TimeSlice {
  readonly start: bigint;
  readonly end: bigint;
  readonly bucket: number;
  readonly buckets: number;
  /**
   * With one bucket, the number of records. With several, the count of each bucket is unknown until it is read: the last bucket
   * has the count of the whole range and the others have 0, which is exact enough for progress.
   */
  readonly records: number;
}

/** One or more minutes. Times as in TimeSlice. */
interface TimeRange {
  readonly start: bigint;
  readonly end: bigint;
  readonly records: number;
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
      const lines = await readLines(source, kind, slice, target.flushedUpTo(kind) - firstSequence);
      const count = lines?.length ?? slice.records;
      if (lines !== undefined && count > 0) {
        const bytes = Buffer.from(lines.map(line => `${line}\n`).join(''));
        await target.apply({ kind, firstSequence, count, lines: bytes });
      }
      firstSequence += count;
      copied += slice.records;
      onProgress(copied, total);
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
  const minutes = await runQuery(source, 'minutes', kind, ['unix_microseconds', 'integer', 'integer']);
  const slices: TimeSlice[] = [];
  let open: TimeRange | undefined;
  for (const [start, records, bytes] of minutes as [bigint, number, number][]) {
    const minute = { start, end: start + MICROS_PER_MINUTE, records, bytes };
    const joined: TimeRange = open === undefined ? minute : join(open, minute);
    const isFull = joined.records > SLICE_RECORDS || joined.bytes > maxBytes;
    if (open !== undefined && isFull) slices.push(...toSlices(open, maxBytes));
    open = isFull ? minute : joined;
  }
  if (open !== undefined) slices.push(...toSlices(open, maxBytes));
  return slices;
}

function join(first: TimeRange, next: TimeRange): TimeRange {
  return {
    start: first.start,
    end: next.end,
    records: first.records + next.records,
    bytes: first.bytes + next.bytes,
  };
}

/** Splits a range into hash buckets if it has more than twice the size of a slice. */
function toSlices({ start, end, records, bytes }: TimeRange, maxBytes: number): TimeSlice[] {
  const buckets = Math.ceil(Math.max(records / SLICE_RECORDS, bytes / maxBytes) / 2);
  return Array.from({ length: buckets }, (_, bucket) => ({
    start,
    end,
    bucket,
    buckets,
    records: bucket === buckets - 1 ? records : 0,
  }));
}

/** Returns undefined if all records of the slice are flushed already. A bucket is always read, because its count is unknown. */
async function readLines(
  source: Store,
  kind: LogKind,
  { start, end, bucket, buckets, records }: TimeSlice,
  alreadyFlushed: number,
): Promise<readonly string[] | undefined> {
  if (buckets === 1 && alreadyFlushed >= records) return undefined;
  const rows = await runQuery(source, 'lines', kind, ['text'], {
    start: { type: 'timestamp', value: start },
    end: { type: 'timestamp', value: end },
    bucket: { type: 'integer', value: bucket },
    buckets: { type: 'integer', value: buckets },
  });
  return rows.map(([line]) => String(line));
}

/** Returns a description of the records of each day. If both stores have the same records, the descriptions are equal. */
async function readDays(store: Store, kind: LogKind): Promise<Map<string, string>> {
  const rows = await runQuery(store, 'days', kind, ['text', 'integer', 'integer', 'integer']);
  return new Map(
    rows.map(([day, count, low, high]) => [String(day), `${count} records, checksum ${low}-${high}`]),
  );
}

/** Runs migrate/<name>.<store>.sql for the table of a kind. */
async function runQuery(
  store: Store,
  name: 'days' | 'minutes' | 'lines',
  kind: LogKind,
  types: readonly ColumnType[],
  values: BoundValues = {},
): Promise<readonly (readonly Cell[])[]> {
  const template = readFileSync(new URL(`migrate/${name}.${store.name}.sql`, import.meta.url), 'utf8');
  const sql = template
    .replace('{{table}}', `${kind}_logs`)
    .replace('{{fields}}', () => (name === 'lines' ? lineFields(kind) : checksumFields(kind, store.name)));
  const columns = types.map((type, index) => ({ name: `column_${index}`, type }));
  return (await store.query({ sql, columns, maxRows: NO_ROW_LIMIT }, values, { label: 'migrate' })).rows;
}

/** SQL for the fields of a log line (log-line.ts) before the metadata. chr(30) is NULL_MARKER. */
function lineFields(kind: LogKind): string {
  return lineFieldsOf(kind)
    .map(({ name, type, nullable }) => {
      if (type === 'timestamp') return `epoch_us(${name})`;
      return nullable ? `coalesce(to_json(${name})::varchar, chr(30))` : `to_json(${name})`;
    })
    .join(', ');
}

/** SQL for the values of a log line as texts that are the same in both stores. */
function checksumFields(kind: LogKind, store: StoreName): string {
  const columns = lineColumnsOf(kind);
  return store === 'duckdb'
    ? columns.map(toDuckDBText).join(', chr(31), ')
    : columns.map(toClickHouseText).join(', char(31), ');
}

function toDuckDBText({ name, type, nullable }: LogColumn): string {
  const values = {
    timestamp: `epoch_us(${name})`,
    number: `floor(${name} * 1000 + ${ROUNDING_OFFSET})::bigint`,
  };
  const text = `(${type === 'timestamp' || type === 'number' ? values[type] : name})::varchar`;
  return nullable ? `coalesce(${text}, 'null')` : text;
}

function toClickHouseText({ name, type, nullable }: LogColumn): string {
  const value = type === 'number' ? `toInt64(floor(${name} * 1000 + ${ROUNDING_OFFSET}))` : name;
  return nullable ? `ifNull(toString(${value}), 'null')` : `toString(${value})`;
}
