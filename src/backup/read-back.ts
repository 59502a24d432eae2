// Reads every file of a backup, and counts its records.
import { join } from 'node:path';
import { formatDamage } from '../domain/damage.ts';
import { spoolDirectoryIn } from '../intake/spool.ts';
import { readSegment, SpooledCounts } from '../intake/spool-snapshot.ts';
import { listSegments } from '../intake/spool-state.ts';
import { inspectStore } from '../store/open-store.ts';
import type { StoreName } from '../store/store.ts';
import { OpenFile } from '../system/open-file.ts';
import { type BackupReport, countsByKind } from './take-backup.ts';

/** Throws if a file is damaged, or if the store is missing. A store that has no files yet counts as empty. */
export async function readBack(directory: string, store: StoreName): Promise<BackupReport['records']> {
  const content = await inspectStore(store, { dataDirectory: directory });
  // A run with ClickHouse may have left an outbox. With another store, its records are not in the report.
  const outbox = await inspectStore('clickhouse', { dataDirectory: directory });
  const [damage] = [...content.damages, ...outbox.damages];
  if (damage !== undefined) throw new Error(formatDamage(damage));
  const spool = spoolDirectoryIn(directory);
  const spooled = new SpooledCounts(content.durableUpTo);
  for (const name of listSegments(spool)) {
    const file = new OpenFile(join(spool, name), `spool/${name}`);
    try {
      for await (const { blocks } of readSegment(file)) spooled.add(blocks);
    } finally {
      await file.close();
    }
  }
  return countsByKind(content.records, spooled.counts);
}
