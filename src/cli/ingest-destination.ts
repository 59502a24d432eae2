// Where `dendro ingest` brings records, and in what form they come there.
import type { LogKind } from '../domain/log-columns.ts';
import type { LogChunk } from '../logs/log-chunks.ts';
import type { Rejection } from '../logs/rejection.ts';
import type { IngestSummary } from './ingest-tally.ts';

/** Lines of NDJSON of one kind, or what cannot even be a line. */
export type KindChunk =
  | { readonly kind: LogKind; readonly lines: Uint8Array }
  | { readonly rejection: Rejection };

export interface IngestDestination {
  /** Brings one file in; the tally is told what became of its records. */
  load(pieces: AsyncIterable<KindChunk>, tally: IngestSummary): Promise<void>;
  close(): Promise<void>;
}

export async function* withKind(pieces: AsyncIterable<LogChunk>, kind: LogKind): AsyncGenerator<KindChunk> {
  for await (const piece of pieces) yield 'lines' in piece ? { kind, lines: piece.lines } : piece;
}

/** Works on a few items at once and gives the results in the order of the items. */
export async function* inOrder<T, R>(
  items: AsyncIterable<T>,
  atOnce: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  for await (const item of items) {
    const result = work(item);
    result.catch(() => {}); // it is awaited below, perhaps after another one has failed
    running.push(result);
    if (running.length < atOnce) continue;
    const first = running.shift();
    if (first !== undefined) yield await first;
  }
  for (const result of running) yield await result;
}
