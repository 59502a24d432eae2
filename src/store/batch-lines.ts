// Regroups incoming batches into insert batches of one kind, which are large enough to insert efficiently.
import type { LogKind } from '../domain/log-columns.ts';
import { type LogLines, offsetAfterLines } from '../domain/log-line.ts';

export interface InsertBatch {
  readonly kind: LogKind;
  readonly count: number;
  /** Whole lines, in the order of arrival. */
  readonly chunks: readonly Uint8Array[];
}

interface OpenBatch {
  count: number;
  bytes: number;
  chunks: Uint8Array[];
}

/**
 * An insert batch is full at exactly `maxRows` lines, or with the chunk that reaches `maxBytes`. Batches that are not full come
 * last.
 */
export async function* batchLines(
  batches: AsyncIterable<LogLines>,
  maxRows: number,
  maxBytes: number,
): AsyncGenerator<InsertBatch> {
  const open = new Map<LogKind, OpenBatch>();
  for await (const { kind, count, lines } of batches) {
    let [rest, left] = [lines, count];
    while (left > 0) {
      const batch = open.get(kind) ?? { count: 0, bytes: 0, chunks: [] };
      open.set(kind, batch);
      const taken = Math.min(left, maxRows - batch.count);
      const chunk = taken === left ? rest : rest.subarray(0, offsetAfterLines(rest, taken));
      batch.count += taken;
      batch.bytes += chunk.length;
      batch.chunks.push(chunk);
      [rest, left] = [rest.subarray(chunk.length), left - taken];
      if (batch.count < maxRows && batch.bytes < maxBytes) continue;
      open.delete(kind);
      yield { kind, count: batch.count, chunks: batch.chunks };
    }
  }
  for (const [kind, { count, chunks }] of open) yield { kind, count, chunks };
}
