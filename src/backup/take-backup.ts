// The server's side of a backup: all files of one moment, as a tar archive, while everything else continues. The copy has exactly
// the records that were durable at that moment.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Intake } from '../intake/intake.ts';
import type { Quarantine } from '../intake/quarantine.ts';
import type { Observe } from '../observe/event.ts';
import type { Store, StoreName } from '../store/store.ts';
import { type Clock, MICROS_PER_SECOND } from '../system/clock.ts';
import { OpenFile } from '../system/open-file.ts';
import { bufferFile, writeTar } from '../system/tar.ts';
import { readVersion } from '../system/version.ts';

/** The last file of a backup: when and by which version it was taken. `dendro backup` adds how many records it has. */
export const REPORT_FILE = 'backup.json';

export interface BackupReport {
  readonly version: string;
  /** RFC 3339, UTC. */
  readonly takenAt: string;
  readonly store: StoreName;
}

/** The names of the files in the outbox: records that are to be sent to ClickHouse (store/clickhouse/outbox.ts). */
const OUTBOX_FILE = /^(progress\.json|\w+\.block)$/;

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

/** Leaves out parts whose SHA-256 is in `omitted`. */
export async function takeBackup(
  dependencies: BackupDependencies,
  omitted: ReadonlySet<string>,
): Promise<Backup> {
  const opened: { close(): Promise<void> }[] = [];
  const release = async () => {
    await Promise.all(opened.map(file => file.close()));
  };
  try {
    // Everything up to the first await is of the same moment.
    const takenAtMicros = dependencies.clock();
    const store = dependencies.store.snapshot(omitted);
    opened.push(store);
    const spool = dependencies.intake.snapshotSpool();
    opened.push(spool);
    const others: OpenFile[] = [];
    for (const file of openStaticFiles(dependencies)) {
      opened.push(file);
      others.push(file);
    }
    const quarantine = await dependencies.quarantine.openFiles();
    opened.push(...quarantine);
    const report: BackupReport = {
      version: readVersion(),
      takenAt: formatTimestamp(takenAtMicros),
      store: dependencies.store.name,
    };
    const reportFile = bufferFile(REPORT_FILE, formatReport(report));
    const files = [...store.files, ...spool.files, ...others, ...quarantine, reportFile];
    return { chunks: writeTar(files, Number(takenAtMicros / MICROS_PER_SECOND)), release };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * Opens the files that are replaced as a whole, or do not change while the server runs. With DuckDB, that includes the outbox that an
 * earlier run with ClickHouse may have left. With ClickHouse, the outbox is in use, and the snapshot of the store has its files.
 */
function* openStaticFiles({ store, dataDirectory, tokensFile }: BackupDependencies): Generator<OpenFile> {
  const outbox = join(dataDirectory, 'clickhouse');
  const outboxFiles = store.name === 'duckdb' && existsSync(outbox) ? readdirSync(outbox) : [];
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
  const alerts = join(dataDirectory, 'alerts');
  for (const name of existsSync(alerts) ? readdirSync(alerts) : [])
    if (name.endsWith('.json')) yield new OpenFile(join(alerts, name), `alerts/${name}`);
}

export function formatReport(report: BackupReport): string {
  return `${JSON.stringify(report, undefined, 2)}\n`;
}
