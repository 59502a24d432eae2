// Reads the records of one kind by their sequence numbers from the segments of the spool.
import type { LogKind } from '../domain/log-columns.ts';
import type { SequenceRange, SpooledLines } from '../store/store.ts';
import type { SpoolSegment } from './spool-segment.ts';

const READ_BYTES = 4 * 1024 * 1024;

/** Yields the blocks that have records of the range. They can begin before it or end after it. */
export async function* readSpoolRange(
  segments: readonly SpoolSegment[],
  kind: LogKind,
  { firstSequence, nextSequence }: SequenceRange,
): AsyncGenerator<SpooledLines> {
  for (const segment of segments) {
    if ((segment.endSequences.get(kind) ?? 0) <= firstSequence) continue;
    for (let offset = 0; offset < segment.validBytes; ) {
      const { blocks, end } = await segment.readValid(offset, READ_BYTES);
      offset = end;
      for (const { header, lines } of blocks) {
        const { count, firstSequence: blockFirst } = header;
        if (header.kind !== kind || blockFirst + count <= firstSequence) continue;
        if (blockFirst >= nextSequence) return;
        yield { kind, count, firstSequence: blockFirst, lines };
      }
    }
  }
}
