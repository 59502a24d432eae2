// Reads every file of a backup, and counts its records.
import { join } from 'node:path';
import { formatDamage } from '../domain/damage.ts';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { spoolDirectoryIn } from '../intake/spool.ts';
import { readSegment } from '../intake/spool-snapshot.ts';
import { listSegments } from '../intake/spool-state.ts';
import { inspectStore } from '../store/open-store.ts';
import type { StoreName } from '../store/store.ts';
import { OpenFile } from '../system/open-file.ts';

/** Only kinds with records. `stored`: in the store's files. `spooled`: further records, which are in the spool only. */
export type RecordCounts = Readonly<
  Partial<Record<LogKind, { readonly stored: number; readonly spooled: number }>>
>;

/** Throws if a file is damaged, or if the store is missing. A store that has no files yet counts as empty. */
export async function readBack(directory: string, store: StoreName): Promise<RecordCounts> {
  const content = await inspectStore(store, { dataDirectory: directory });
  // A run with ClickHouse may have left an outbox. With another store, its records are not counted.
  const outbox = await inspectStore('clickhouse', { dataDirectory: directory });
  const [damage] = [...content.damages, ...outbox.damages];
  if (damage !== undefined) throw new Error(formatDamage(damage));
  const spool = spoolDirectoryIn(directory);
  const spooled = new Map<LogKind, number>();
  for (const name of listSegments(spool)) {
    const file = new OpenFile(join(spool, name), `spool/${name}`);
    try {
      for await (const { blocks } of readSegment(file))
        for (const { kind, firstSequence, count } of blocks) {
          const missing = Math.min(count, firstSequence + count - content.durableUpTo(kind));
          if (missing > 0) spooled.set(kind, (spooled.get(kind) ?? 0) + missing);
        }
    } finally {
      await file.close();
    }
  }
  const counts = LOG_KINDS.map(
    kind => [kind, { stored: content.records.get(kind) ?? 0, spooled: spooled.get(kind) ?? 0 }] as const,
  );
  return Object.fromEntries(counts.filter(([, each]) => each.stored + each.spooled > 0));
}
