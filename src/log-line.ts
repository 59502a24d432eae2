// How records travel from the door to a store: one line each, a JSON head and, behind a unit separator, the metadata as
// it stands. Metadata inside the JSON would have to be escaped here and unescaped there, which took a fifth of the time.
import type { LogKind, LogRecord } from './log-record.ts';

/** Records of one kind, as lines. */
export interface LogLines {
  readonly kind: LogKind;
  readonly count: number;
  /** UTF-8, every line with its newline. */
  readonly lines: Uint8Array;
}

/** JSON writes every control character as an escape, so neither part of a line holds this one or a newline. */
export const UNIT_SEPARATOR = '\x1f';

export function toLogLine(record: LogRecord): string {
  const head = JSON.stringify({
    id: record.id,
    timestamp: record.timestampMicros,
    project: record.project,
    event_message: record.eventMessage,
    ...record.lifted,
  });
  return `${head}${UNIT_SEPARATOR}${record.metadata}\n`;
}

export function toLogLines(kind: LogKind, records: readonly LogRecord[]): LogLines {
  return { kind, count: records.length, lines: Buffer.from(records.map(toLogLine).join('')) };
}

const NEWLINE = 0x0a;

/** Where the line after the first `count` lines begins. */
export function endOfLines(lines: Uint8Array, count: number): number {
  let end = 0;
  for (let passed = 0; passed < count; passed++) end = lines.indexOf(NEWLINE, end) + 1;
  return end;
}
