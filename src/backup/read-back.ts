// Reads every file of a copy of a data directory, and counts its records.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogKind } from '../domain/log-columns.ts';
import { spoolDirectoryIn } from '../intake/spool.ts';
import { isTooShort, scanSegment } from '../intake/spool-repair.ts';
import { DamagedBlockError } from '../intake/spool-segment.ts';
import { readSegment, SpooledCounts } from '../intake/spool-snapshot.ts';
import { findNextSequences, listSegments, readSequences, trackEnd } from '../intake/spool-state.ts';
import { hasStoreFiles, isStoreMissing, readStoreCopy } from '../store/open-store.ts';
import type { StoreContent, StoreName } from '../store/store.ts';
import { OpenFile } from '../system/open-file.ts';
import { type BackupReport, countsByKind } from './backup-report.ts';

export interface ReadBackOptions {
  readonly store: StoreName;
  /**
   * How many bytes of the last segment were complete at the last clean stop (spool-state.ts). A process that was killed can leave
   * an unfinished block at the end of this segment, at or after this offset. The block was never acknowledged, so it is skipped.
   * Any other damage, a shorter segment and missing segments are errors. Undefined, for the copy of a running server: no block is
   * skipped, and missing segments are not detected.
   */
  readonly completeBytes?: number | undefined;
}

/** Throws if a file is damaged, or if files are missing (see `completeBytes`). A store that has no files yet counts as empty. */
export async function readBack(
  directory: string,
  { store, completeBytes }: ReadBackOptions,
): Promise<BackupReport['records']> {
  if (await isStoreMissing(store, directory))
    throw new Error('manifest.json does not exist, although a server has used this data directory');
  const content: StoreContent = hasStoreFiles(store, directory)
    ? await readStoreCopy(store, directory)
    : { records: new Map(), durableUpTo: () => 0 };
  const spooled = await countSpooled(directory, content.durableUpTo, completeBytes);
  return countsByKind(content.records, spooled);
}

async function countSpooled(
  directory: string,
  durableUpTo: (kind: LogKind) => number,
  completeBytes: number | undefined,
): Promise<ReadonlyMap<LogKind, number>> {
  const spool = spoolDirectoryIn(directory);
  const names = listSegments(spool);
  const spooled = new SpooledCounts(durableUpTo);
  const segmentEnds: Map<LogKind, number>[] = [];
  for (const name of names) {
    const ends = new Map<LogKind, number>();
    segmentEnds.push(ends);
    const file = new OpenFile(join(spool, name), `spool/${name}`);
    try {
      if (name === names.at(-1) && isTooShort(file.bytes, completeBytes ?? 0))
        throw new Error(
          `${file.path} has ${file.bytes} bytes, but had ${completeBytes} at the last clean stop`,
        );
      for await (const { blocks } of readSegment(file)) {
        spooled.add(blocks);
        for (const block of blocks) trackEnd(ends, block);
      }
    } catch (error) {
      const canBeTorn = name === names.at(-1) && error instanceof DamagedBlockError;
      if (!canBeTorn || completeBytes === undefined) throw error;
      if (!(await endsWithTornWrite(join(spool, name), completeBytes))) throw error;
    } finally {
      await file.close();
    }
  }
  // A running server has checked for missing segments when it started.
  if (completeBytes === undefined) return spooled.counts;
  if (findNextSequences(await readSequences(spool), segmentEnds, durableUpTo).isIncomplete)
    throw new Error('files of the spool are missing');
  return spooled.counts;
}

/** Whether an unfinished write at the end is all that is invalid in the last segment. */
async function endsWithTornWrite(path: string, completeBytes: number): Promise<boolean> {
  return scanSegment(await readFile(path), completeBytes).ranges.length === 0;
}
