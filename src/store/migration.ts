// Moves records from the embedded store to a ClickHouse: in slices of time that are always cut in the same places, through
// the same frozen blocks as records of a spool, so that what was broken off goes on where it was. Both stores are then asked
// for counts and checksums of every kind and day.
import { readFileSync } from 'node:fs';
import { columnsOf, LOG_KINDS, type LogColumn, type LogKind } from '../domain/log-columns.ts';
import type { BoundValues, Cell, ColumnType, Store, StoreName } from './store.ts';

const MINUTE = 60_000_000n;
/** A slice has about as many records and no more bytes than a fold, unless one minute has; that is cut by the hash of the id. */
const SLICE_RECORDS = 20_000;
/** More days, minutes or records than any answer here has. */
const ALL_ROWS = 2 ** 31;

/** ClickHouse may keep another last digit of a fraction: numbers are compared to a microsecond, cut where none is written. */
const OFF_GRID = 0.287391;

interface Slice {
  readonly start: bigint;
  readonly end: bigint;
  readonly part: number;
  readonly parts: number;
  readonly records: number;
}

interface Span {
  readonly start: bigint;
  readonly end: bigint;
  readonly records: number;
  readonly bytes: number;
}

export interface DayDifference {
  readonly kind: LogKind;
  readonly day: string;
  readonly here: string;
  readonly there: string;
}

export type OnProgress = (moved: number, all: number) => void;

/** `to` numbers what it takes by itself, in a folder that belongs to this migration. Answers how many there are. */
export async function moveRecords(from: Store, to: Store, onProgress: OnProgress): Promise<number> {
  const slicesOf = new Map<LogKind, readonly Slice[]>();
  for (const kind of LOG_KINDS) slicesOf.set(kind, await findSlices(from, kind, to.applyBatchBytes));
  const all = [...slicesOf.values()].flat().reduce((sum, { records }) => sum + records, 0);
  let moved = 0;
  for (const [kind, slices] of slicesOf) {
    let firstSequence = 0;
    for (const slice of slices) {
      const lines = await readLines(from, kind, slice, to.flushedUpTo(kind) - firstSequence);
      const count = lines?.length ?? slice.records;
      if (lines !== undefined && count > 0) {
        const bytes = Buffer.from(lines.map(line => `${line}\n`).join(''));
        await to.apply({ kind, firstSequence, count, lines: bytes });
      }
      firstSequence += count;
      moved += slice.records;
      onProgress(moved, all);
    }
  }
  return all;
}

/** Every kind and day whose counts or checksums are not the same in both. */
export async function compareDays(here: Store, there: Store): Promise<DayDifference[]> {
  const differences: DayDifference[] = [];
  for (const kind of LOG_KINDS) {
    const [mine, theirs] = [await readDays(here, kind), await readDays(there, kind)];
    for (const day of [...new Set([...mine.keys(), ...theirs.keys()])].sort()) {
      const [a, b] = [mine.get(day) ?? 'none', theirs.get(day) ?? 'none'];
      if (a !== b) differences.push({ kind, day, here: a, there: b });
    }
  }
  return differences;
}

async function findSlices(from: Store, kind: LogKind, maxBytes: number): Promise<Slice[]> {
  const minutes = await ask(from, 'minutes', kind, ['unix_microseconds', 'integer', 'integer']);
  const slices: Slice[] = [];
  let open: Span | undefined;
  for (const [start, records, bytes] of minutes as [bigint, number, number][]) {
    const minute = { start, end: start + MINUTE, records, bytes };
    const joined: Span = open === undefined ? minute : join(open, minute);
    const isFull = joined.records > SLICE_RECORDS || joined.bytes > maxBytes;
    if (open !== undefined && isFull) slices.push(...cut(open, maxBytes));
    open = isFull ? minute : joined;
  }
  if (open !== undefined) slices.push(...cut(open, maxBytes));
  return slices;
}

function join(one: Span, next: Span): Span {
  const [records, bytes] = [one.records + next.records, one.bytes + next.bytes];
  return { start: one.start, end: next.end, records, bytes };
}

function cut({ start, end, records, bytes }: Span, maxBytes: number): Slice[] {
  const parts = Math.ceil(Math.max(records / SLICE_RECORDS, bytes / maxBytes) / 2);
  // How many fall into each part is known when it is read; the last one stands for all that are told of.
  return Array.from({ length: parts }, (_, part) => ({
    ...{ start, end, part, parts },
    records: part === parts - 1 ? records : 0,
  }));
}

/** Undefined where all of a slice that is whole was taken before. */
async function readLines(
  from: Store,
  kind: LogKind,
  { start, end, part, parts, records }: Slice,
  settled: number,
): Promise<readonly string[] | undefined> {
  if (parts === 1 && settled >= records) return undefined;
  const rows = await ask(from, 'lines', kind, ['text'], {
    start: { type: 'timestamp', value: start },
    end: { type: 'timestamp', value: end },
    part: { type: 'integer', value: part },
    parts: { type: 'integer', value: parts },
  });
  return rows.map(([line]) => String(line));
}

async function readDays(store: Store, kind: LogKind): Promise<Map<string, string>> {
  const rows = await ask(store, 'days', kind, ['text', 'integer', 'integer', 'integer']);
  return new Map(
    rows.map(([day, count, low, high]) => [String(day), `${count} records, checksum ${low}-${high}`]),
  );
}

async function ask(
  store: Store,
  name: 'days' | 'minutes' | 'lines',
  kind: LogKind,
  types: readonly ColumnType[],
  values: BoundValues = {},
): Promise<readonly (readonly Cell[])[]> {
  const text = readFileSync(new URL(`migrate/${name}.${store.name}.sql`, import.meta.url), 'utf8');
  const sql = text
    .replace('{{table}}', `${kind}_logs`)
    .replace('{{fields}}', () => fieldsOf(kind, store.name, name));
  const columns = types.map((type, index) => ({ name: `column_${index}`, type }));
  return (await store.query({ sql, columns, maxRows: ALL_ROWS }, values, { label: 'migrate' })).rows;
}

/** The columns of a kind as SQL: the fields of a log line, or texts whose checksum is the same in both stores. */
function fieldsOf(kind: LogKind, store: StoreName, query: 'days' | 'minutes' | 'lines'): string {
  const columns = columnsOf(kind);
  if (query === 'lines')
    return columns
      .filter(({ type }) => type !== 'json')
      .map(lineField)
      .join(', ');
  return store === 'duckdb'
    ? columns.map(duckdbText).join(', chr(31), ')
    : columns.map(clickhouseText).join(', char(31), ');
}

function lineField({ name, type, nullable }: LogColumn): string {
  if (type === 'timestamp') return `epoch_us(${name})`;
  return nullable ? `coalesce(to_json(${name})::varchar, chr(30))` : `to_json(${name})`;
}

function duckdbText({ name, type, nullable }: LogColumn): string {
  const values = { timestamp: `epoch_us(${name})`, number: `floor(${name} * 1000 + ${OFF_GRID})::bigint` };
  const text = `(${type === 'timestamp' || type === 'number' ? values[type] : name})::varchar`;
  return nullable ? `coalesce(${text}, 'null')` : text;
}

function clickhouseText({ name, type, nullable }: LogColumn): string {
  const value = type === 'number' ? `toInt64(floor(${name} * 1000 + ${OFF_GRID}))` : name;
  return nullable ? `ifNull(toString(${value}), 'null')` : `toString(${value})`;
}
