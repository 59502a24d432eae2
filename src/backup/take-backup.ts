// The server's side of a backup: all files of one moment, as a tar archive, while intake and queries continue. The moment is when
// the spool and the store are captured together: the copy has exactly the records that were durable then.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Intake } from '../intake/intake.ts';
import type { Quarantine } from '../intake/quarantine.ts';
import { SpooledCounts, type SpoolSnapshot } from '../intake/spool-snapshot.ts';
import type { Observe } from '../observe/event.ts';
import type { Store, StoreSnapshot } from '../store/store.ts';
import { type Clock, MICROS_PER_SECOND } from '../system/clock.ts';
import { OpenFile } from '../system/open-file.ts';
import { bufferFile, type TarFile, writeTar } from '../system/tar.ts';
import { readVersion } from '../system/version.ts';
import { countsByKind, formatReport, REPORT_FILE } from './backup-report.ts';
import { OUTBOX_FILE } from './data-files.ts';

export interface BackupDependencies {
  readonly store: Store;
  readonly intake: Pick<Intake, 'snapshotSpool'>;
  readonly quarantine: Quarantine;
  readonly dataDirectory: string;
  readonly tokensFile: string;
  readonly clock: Clock;
  readonly observe: Observe;
}

export interface Backup {
  /** A tar archive. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** The caller must call it when it has read the chunks, or does not need them. Can be called twice. */
  release(): Promise<void>;
}

/** Everything that was captured for the backup. */
interface Captured {
  readonly store: StoreSnapshot;
  readonly spool: SpoolSnapshot;
  readonly otherFiles: readonly OpenFile[];
  readonly takenAtMicros: bigint;
}

/** Throws `unavailable` if the store cannot be captured now. */
export async function takeBackup(dependencies: BackupDependencies): Promise<Backup> {
  const openFiles: { close(): Promise<void> }[] = [];
  const closeFiles = async () => {
    await Promise.all(openFiles.map(file => file.close()));
  };
  try {
    const captured = await capture(dependencies, openFiles);
    const mtimeSeconds = Number(captured.takenAtMicros / MICROS_PER_SECOND);
    return {
      chunks: writeTar(listFiles(dependencies, captured), mtimeSeconds),
      release() {
        captured.store.release();
        return closeFiles();
      },
    };
  } catch (error) {
    await closeFiles();
    throw error;
  }
}

/** Adds everything that it opens to `openFiles`. */
async function capture(
  { store, intake, quarantine, ...rest }: BackupDependencies,
  openFiles: { close(): Promise<void> }[],
): Promise<Captured> {
  let moment: Omit<Captured, 'store'> | undefined;
  let quarantineFiles: Promise<OpenFile[]> = Promise.resolve([]);
  const snapshot = await store.snapshot(() => {
    const spool = intake.snapshotSpool();
    openFiles.push(spool);
    const otherFiles: OpenFile[] = [];
    for (const file of openStaticFiles(store.name === 'duckdb', rest)) {
      openFiles.push(file);
      otherFiles.push(file);
    }
    quarantineFiles = quarantine.openFiles();
    moment = { spool, otherFiles, takenAtMicros: rest.clock() };
  });
  try {
    const opened = await quarantineFiles;
    openFiles.push(...opened);
    if (moment === undefined) throw new Error('the store has not called onSnapshot');
    // The type assertion is needed because TypeScript does not see the assignment in the callback.
    const { otherFiles, ...others } = moment as Omit<Captured, 'store'>;
    return { ...others, store: snapshot, otherFiles: [...otherFiles, ...opened] };
  } catch (error) {
    snapshot.release();
    throw error;
  }
}

/**
 * Opens the files that are replaced as a whole, or do not change while the server runs. With DuckDB, that includes the outbox that an
 * earlier run with ClickHouse may have left. With ClickHouse, the outbox is in use, and the snapshot of the store has its files.
 */
function* openStaticFiles(
  hasUnusedOutbox: boolean,
  { dataDirectory, tokensFile }: Pick<BackupDependencies, 'dataDirectory' | 'tokensFile'>,
): Generator<OpenFile> {
  const outbox = join(dataDirectory, 'clickhouse');
  const outboxFiles = hasUnusedOutbox && existsSync(outbox) ? readdirSync(outbox) : [];
  for (const [file, path] of [
    [join(dataDirectory, 'format.json'), 'format.json'],
    [join(dataDirectory, 'erase.json'), 'erase.json'],
    [tokensFile, 'tokens.json'],
  ] as const) {
    const opened = OpenFile.ifExists(file, path);
    if (opened !== undefined) yield opened;
  }
  for (const name of outboxFiles.filter(each => OUTBOX_FILE.test(each)))
    yield new OpenFile(join(outbox, name), `clickhouse/${name}`);
}

/** The store's files first: until they are read, the embedded store writes no checkpoint and does not compact. */
async function* listFiles({ store }: BackupDependencies, captured: Captured): AsyncGenerator<TarFile> {
  yield* captured.store.files;
  captured.store.release();
  const spooled = new SpooledCounts(captured.store.durableUpTo);
  captured.spool.onBlocks = spooled.add;
  yield* captured.spool.files;
  yield* captured.otherFiles;
  const report = {
    version: readVersion(),
    takenAt: formatTimestamp(captured.takenAtMicros),
    store: store.name,
    records: countsByKind(captured.store.records, spooled.counts),
  };
  yield bufferFile(REPORT_FILE, formatReport(report));
}
