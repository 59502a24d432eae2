// How records travel from the door to a store: one line each, its columns behind unit separators, the metadata as it
// stands at the end. A line of JSON took 1.5 µs a record more, and metadata in it a fifth of all the time.
import type { LogKind, LogRecord } from './log-record.ts';

/** Records of one kind, as lines. */
export interface LogLines {
  readonly kind: LogKind;
  readonly count: number;
  /** UTF-8, every line with its newline. */
  readonly lines: Uint8Array;
}

/** A line's columns by their names, which are those of the stores' tables; `metadata` is JSON text. */
export type LineColumns = Readonly<Record<string, Value>>;

type Value = string | number | null;
type ColumnType = 'text' | 'integer' | 'number';

/** Raised whenever the form of a line changes, so that no store reads lines of another form. */
export const LINE_FORMAT_VERSION = 2;

/** What stands between two columns. Metadata is JSON, which holds no control character; nor do the other columns. */
export const UNIT_SEPARATOR = '\x1f';
/** The column of a value that there is not. */
export const NULL_MARKER = '\x1e';
/** The first column where texts hold control characters: all texts of the line are written as JSON then. Else it is empty. */
export const JSON_STRINGS_FLAG = 'j';

const COMMON_COLUMNS = { id: 'text', timestamp: 'integer', project: 'text', event_message: 'text' } as const;

/** No two kinds that have some have as many, so a line's columns are known by their number. */
const EXTRACTED_COLUMNS: Partial<Record<LogKind, Readonly<Record<string, ColumnType>>>> = {
  edge: { url: 'text', path: 'text' },
  function_edge: { function_id: 'text', execution_time_ms: 'number', status_code: 'integer' },
};

/** The columns between the first, which says how texts are written, and the last, the metadata. */
export function columnsOf(kind: LogKind): Readonly<Record<string, ColumnType>> {
  return { ...COMMON_COLUMNS, ...EXTRACTED_COLUMNS[kind] };
}

export function toLogLine({
  id,
  timestampMicros,
  project,
  eventMessage,
  extracted,
  metadata,
}: LogRecord): string {
  return writeLine([id, timestampMicros, project, eventMessage, ...listExtracted(extracted)], metadata);
}

export function toLogLines(kind: LogKind, records: readonly LogRecord[]): LogLines {
  return { kind, count: records.length, lines: Buffer.from(records.map(toLogLine).join('')) };
}

function listExtracted(extracted: LogRecord['extracted']): readonly Value[] {
  if ('url' in extracted) return [extracted.url, extracted.path];
  if ('function_id' in extracted)
    return [extracted.function_id, extracted.execution_time_ms, extracted.status_code];
  return [];
}

function writeLine(values: readonly Value[], metadata: string): string {
  const asJson = values.some(value => typeof value === 'string' && CONTROL_CHARACTER.test(value));
  let line = asJson ? JSON_STRINGS_FLAG : '';
  for (const value of values) {
    line += UNIT_SEPARATOR;
    if (value === null) line += NULL_MARKER;
    else line += asJson && typeof value === 'string' ? JSON.stringify(value) : value;
  }
  return `${line}${UNIT_SEPARATOR}${metadata}\n`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTER = /[\0-\x1f]/;

const ALL_COLUMNS = [{}, ...Object.values(EXTRACTED_COLUMNS)].map(extracted =>
  Object.entries({ ...COMMON_COLUMNS, ...extracted }),
);

/** Undefined for what is no line. */
export function readLogLine(line: string): LineColumns | undefined {
  const [form = '', ...fields] = line.replace(/\n$/, '').split(UNIT_SEPARATOR);
  const metadata = fields.pop() ?? '';
  const columns = ALL_COLUMNS.find(({ length }) => length === fields.length);
  if (columns === undefined || (form !== '' && form !== JSON_STRINGS_FLAG)) return undefined;
  const read = (field: string, type: ColumnType) => {
    if (field === NULL_MARKER) return null;
    if (type !== 'text') return JSON.parse(field) as number;
    return form === JSON_STRINGS_FLAG ? (JSON.parse(field) as string) : field;
  };
  try {
    const values = columns.map(([name, type], index) => [name, read(fields[index] ?? '', type)]);
    return { ...Object.fromEntries(values), metadata };
  } catch {
    return undefined;
  }
}

/** The line that these columns were read from. */
export function writeLogLine({ metadata, ...columns }: LineColumns): string {
  return writeLine(Object.values(columns), String(metadata));
}

const NEWLINE = 0x0a;

/** Where the line after the first `count` lines begins. */
export function offsetAfterLines(lines: Uint8Array, count: number): number {
  let end = 0;
  for (let passed = 0; passed < count; passed++) end = lines.indexOf(NEWLINE, end) + 1;
  return end;
}
