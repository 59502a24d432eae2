// Reads every file of a backup, and counts its records.
import { join } from 'node:path';
import { spoolDirectoryIn } from '../intake/spool.ts';
import { readSegment, SpooledCounts } from '../intake/spool-snapshot.ts';
import { listSegments } from '../intake/spool-state.ts';
import { hasStoreFiles, isStoreMissing, readStoreCopy } from '../store/open-store.ts';
import type { StoreContent, StoreName } from '../store/store.ts';
import { OpenFile } from '../system/open-file.ts';
import { type BackupReport, countsByKind } from './take-backup.ts';

/** Throws if a file is damaged, or if the store is missing. A store that has no files yet counts as empty. */
export async function readBack(directory: string, store: StoreName): Promise<BackupReport['records']> {
  if (await isStoreMissing(store, directory))
    throw new Error('manifest.json does not exist, although a server has used this data directory');
  const content: StoreContent = hasStoreFiles(store, directory)
    ? await readStoreCopy(store, directory)
    : { records: new Map(), durableUpTo: () => 0 };
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
