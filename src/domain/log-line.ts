// The line format in which records pass from intake to a store: one line per record, fields separated by the ASCII unit
// separator, the metadata last and unchanged. A JSON object per record took 1.5 µs longer, and escaping the
// metadata as a JSON string took a fifth of the intake time. The kind is not in the line.
import { LOG_KINDS, type LogColumn, type LogKind, lineColumnsOf } from './log-columns.ts';
import type { LogRecord } from './log-record.ts';

/** Records of one kind, as lines. */
export interface LogLines {
  readonly kind: LogKind;
  readonly count: number;
  /** UTF-8; every line ends with a newline. */
  readonly lines: Uint8Array;
}

/** The values of a line by column name. */
export type LineColumns = Readonly<Record<string, Value>>;

type Value = string | number | null;

/** Incremented with every change of the format, so that no store reads lines of a different format. */
export const LINE_FORMAT_VERSION = 2;

/**
 * Separates fields. No field contains it: the metadata is JSON, which escapes it, and a text with it is written as a JSON string
 * (JSON_STRINGS_FLAG).
 */
export const UNIT_SEPARATOR = '\x1f';
/** The value of a field that is null. */
export const NULL_MARKER = '\x1e';
/**
 * The first field of a line whose text fields are all JSON strings. In any other line the first field is empty. `toLogLine` sets
 * the flag only if a text field contains a control character. A migration sets it in every line (store/migration.ts).
 */
export const JSON_STRINGS_FLAG = 'j';

/** The fields of a line between the flag and the metadata. */
export function lineFieldsOf(kind: LogKind): readonly LogColumn[] {
  return lineColumnsOf(kind).filter(column => column.type !== 'json');
}

export function toLogLine({
  id,
  timestampMicros,
  project,
  eventMessage,
  extracted,
  metadata,
}: LogRecord): string {
  return joinFields([id, timestampMicros, project, eventMessage, ...Object.values(extracted)], metadata);
}

export function toLogLines(kind: LogKind, records: readonly LogRecord[]): LogLines {
  return { kind, count: records.length, lines: Buffer.from(records.map(toLogLine).join('')) };
}

function joinFields(values: readonly Value[], metadata: string): string {
  let line = '';
  for (const value of values) {
    if (typeof value === 'string' && CONTROL_CHARACTER.test(value)) return joinAsJson(values, metadata);
    line += UNIT_SEPARATOR;
    line += value === null ? NULL_MARKER : value;
  }
  return `${line}${UNIT_SEPARATOR}${metadata}\n`;
}

function joinAsJson(values: readonly Value[], metadata: string): string {
  let line = JSON_STRINGS_FLAG;
  for (const value of values) {
    line += UNIT_SEPARATOR;
    if (value === null) line += NULL_MARKER;
    else line += typeof value === 'string' ? JSON.stringify(value) : value;
  }
  return `${line}${UNIT_SEPARATOR}${metadata}\n`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const CONTROL_CHARACTER = /[\0-\x1f]/;

/** The fields of a line by their count: kinds with the same number of fields have the same fields. */
const FIELDS_BY_COUNT = new Map(LOG_KINDS.map(kind => [lineFieldsOf(kind).length, lineFieldsOf(kind)]));

/** Returns undefined if the text is not a line of this format. */
export function readLogLine(line: string): LineColumns | undefined {
  const [flag = '', ...values] = line.replace(/\n$/, '').split(UNIT_SEPARATOR);
  const metadata = values.pop() ?? '';
  const fields = FIELDS_BY_COUNT.get(values.length);
  if (fields === undefined || (flag !== '' && flag !== JSON_STRINGS_FLAG)) return undefined;
  const read = (text: string, { type }: LogColumn) => {
    if (text === NULL_MARKER) return null;
    if (type !== 'text') return JSON.parse(text) as number;
    return flag === JSON_STRINGS_FLAG ? (JSON.parse(text) as string) : text;
  };
  try {
    const entries = fields.map((field, index) => [field.name, read(values[index] ?? '', field)]);
    return { ...Object.fromEntries(entries), metadata };
  } catch {
    return undefined;
  }
}

/**
 * The inverse of `readLogLine`. Returns the original line if `toLogLine` wrote it. The properties must be in the order of the
 * fields.
 */
export function writeLogLine({ metadata, ...values }: LineColumns): string {
  return joinFields(Object.values(values), String(metadata));
}

const NEWLINE = 0x0a;

/** The byte offset after the first `count` lines. */
export function offsetAfterLines(lines: Uint8Array, count: number): number {
  let end = 0;
  for (let passed = 0; passed < count; passed++) end = offsetAfterLine(lines, end);
  return end;
}

/** The byte offset after the line that starts at `offset`. */
export function offsetAfterLine(lines: Uint8Array, offset: number): number {
  return lines.indexOf(NEWLINE, offset) + 1;
}
