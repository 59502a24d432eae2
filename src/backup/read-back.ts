// Reads and counts every record of a copy of a data directory. If a power cut left an unfinished write or checkpoint in the
// store's file, repairs the file as a start of the server does. Otherwise changes nothing.
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogKind } from '../domain/log-columns.ts';
import { readCompleteBytes } from '../intake/clean-stop.ts';
import { spoolDirectoryIn } from '../intake/spool.ts';
import { findDamagedRanges } from '../intake/spool-repair.ts';
import { DamagedBlockError, readSegment, SpooledCounts } from '../intake/spool-snapshot.ts';
import { readStoreCopy } from '../store/open-store.ts';
import type { StoreContent, StoreName } from '../store/store.ts';
import { OpenFile } from '../system/open-file.ts';
import { type BackupReport, countsByKind } from './backup-report.ts';

export interface ReadBackOptions {
  readonly store: StoreName;
  /** In DuckDB's notation. */
  readonly memoryLimit: string;
  /**
   * A process that was killed can leave an unfinished block at the end of the last segment. It was never acknowledged, so it is
   * skipped. Any other damage is an error.
   */
  readonly allowsTornEnd: boolean;
}

/** Throws if a file is damaged. A missing file counts as empty. */
export async function readBack(
  directory: string,
  { store, memoryLimit, allowsTornEnd }: ReadBackOptions,
): Promise<BackupReport['records']> {
  const content: StoreContent = hasStoreFiles(store, directory)
    ? await readStoreCopy(store, directory, memoryLimit)
    : { records: new Map(), durableUpTo: () => 0 };
  const spooled = await countSpooled(directory, content.durableUpTo, allowsTornEnd);
  return countsByKind(content.records, spooled);
}

/** A data directory that no server has used yet may have none. */
function hasStoreFiles(store: StoreName, directory: string): boolean {
  return existsSync(join(directory, store === 'duckdb' ? 'dendro.duckdb' : 'clickhouse/progress.json'));
}

async function countSpooled(
  directory: string,
  durableUpTo: (kind: LogKind) => number,
  allowsTornEnd: boolean,
): Promise<ReadonlyMap<LogKind, number>> {
  const spool = spoolDirectoryIn(directory);
  const names = existsSync(spool) ? readdirSync(spool).filter(name => name.endsWith('.spool')) : [];
  const spooled = new SpooledCounts(durableUpTo);
  for (const name of names.sort()) {
    const file = new OpenFile(join(spool, name), `spool/${name}`);
    try {
      for await (const { blocks } of readSegment(file)) spooled.add(blocks);
    } catch (error) {
      const canBeTorn = allowsTornEnd && name === names.at(-1) && error instanceof DamagedBlockError;
      if (!canBeTorn || !(await endsWithTornWrite(spool, name))) throw error;
    } finally {
      await file.close();
    }
  }
  return spooled.counts;
}

/** Whether an unfinished write at the end is all that is invalid in the last segment. */
async function endsWithTornWrite(spool: string, name: string): Promise<boolean> {
  const completeBytes = await readCompleteBytes(spool, Number.parseInt(name, 10));
  const ranges = findDamagedRanges(await readFile(join(spool, name)), completeBytes);
  return ranges.every(({ isTorn }) => isTorn);
}
