// Reads a file of quarantined records: each line tells its own source.
import { UsageError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { type LogChunk, toChunks } from '../logs/log-chunks.ts';
import { type Parsed, parseNdjsonLines } from '../logs/parse.ts';
import { parseQuarantined } from '../logs/quarantine-line.ts';
import { type KindChunk, withKind } from './ingest-destination.ts';

/** The records of each piece, sorted by kind. Throws UsageError at a line that is no quarantined record. */
export async function* readQuarantineFile(pieces: AsyncIterable<LogChunk>): AsyncGenerator<KindChunk> {
  for await (const piece of pieces) {
    if ('rejection' in piece) yield piece;
    else for (const [kind, parsed] of byKind(piece.lines)) yield* withKind(piecesOf(parsed), kind);
  }
}

function byKind(lines: Uint8Array): Map<LogKind, Parsed[]> {
  const kinds = new Map<LogKind, Parsed[]>();
  for (const line of parseNdjsonLines(Buffer.from(lines).toString('utf8').split('\n'))) {
    const found = 'value' in line ? parseQuarantined(line.value, line.index) : undefined;
    if (found === undefined)
      throw new UsageError('--source is needed: only the records of a quarantine file tell their own');
    const parsed = kinds.get(found.kind) ?? [];
    kinds.set(found.kind, parsed);
    parsed.push(found.parsed);
  }
  return kinds;
}

async function* piecesOf(parsed: readonly Parsed[]): AsyncGenerator<LogChunk> {
  yield* toChunks(parsed);
}
