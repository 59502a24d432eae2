// Reads every record of an outbox, for checks. Sends nothing to ClickHouse and changes no file.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { StoreContent } from '../store.ts';
import { Outbox } from './outbox.ts';
import { decompress } from './rows.ts';

const NEWLINE = 0x0a;

/** The caller must hold the lock of the data directory, or know that no other process uses it. */
export async function readOutbox(directory: string): Promise<StoreContent> {
  const outbox = Outbox.read(directory);
  const { blocks } = outbox.snapshot();
  for (const { kind, count, compressed } of blocks) {
    const rows = await decompress(compressed);
    const found = rows.reduce((lines, byte) => (byte === NEWLINE ? lines + 1 : lines), 0);
    if (found !== count)
      throw new Error(`the outbox block of kind ${kind} has ${found} records instead of ${count}`);
  }
  // A kind has at most one pending block (outbox.ts).
  return {
    records: new Map(LOG_KINDS.map(kind => [kind, blocks.find(block => block.kind === kind)?.count ?? 0])),
    durableUpTo: kind => outbox.durableUpTo(kind),
  };
}
