// Reads the files for a backup of a data directory that no server uses. Left out: the parts that the manifest does not name, the
// previous manifest, lock files, temporary files, the file `first-token`, the times at which tokens were last used,
// `clean-stop.json`, the progress of `dendro migrate`, and the copies of damaged bytes that repairs kept.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { QUARANTINE_FILES } from '../intake/quarantine.ts';
import { listParts } from '../store/open-store.ts';
import { OpenFile } from '../system/open-file.ts';
import type { TarFile } from '../system/tar.ts';
import { REPORT_FILE } from './backup-report.ts';

const TOP_FILES = ['manifest.json', 'format.json', 'erase.json', ...QUARANTINE_FILES];
/** The names of the files in the outbox: records that are to be sent to ClickHouse (store/clickhouse/outbox.ts). */
export const OUTBOX_FILE = /^(progress\.json|\w+\.block)$/;
/** The names of the files to read in these subdirectories. */
const DIRECTORY_FILES = {
  spool: /^(\d+\.(spool|requests)|next-numbers\.json|undelivered\.json)$/,
  clickhouse: OUTBOX_FILE,
};

/** What the directory of a backup can have. */
export const BACKUP_ENTRIES: ReadonlySet<string> = new Set([
  ...TOP_FILES,
  ...Object.keys(DIRECTORY_FILES),
  ...['parts', 'tokens.json', REPORT_FILE],
]);

/**
 * Opens each file after the one before it has been read. Leaves out parts whose SHA-256 is in `omitted`. The caller must hold the
 * lock of the directory.
 */
export async function* readDataFiles(
  dataDirectory: string,
  tokensFile: string,
  omitted: ReadonlySet<string>,
): AsyncGenerator<TarFile> {
  const nested = Object.entries(DIRECTORY_FILES).flatMap(([name, pattern]) =>
    listDirectory(join(dataDirectory, name))
      .filter(file => pattern.test(file))
      .map(file => `${name}/${file}`),
  );
  const parts = (await listParts(dataDirectory))
    .filter(({ sha256, isSetAside }) => !isSetAside && !omitted.has(sha256))
    .map(({ path }) => path);
  for (const path of [...TOP_FILES, ...parts, ...nested])
    yield* readIfExists(join(dataDirectory, path), path);
  yield* readIfExists(tokensFile, 'tokens.json');
}

async function* readIfExists(file: string, path: string): AsyncGenerator<TarFile> {
  const opened = OpenFile.ifExists(file, path);
  if (opened === undefined) return;
  try {
    yield opened;
  } finally {
    await opened.close();
  }
}

function listDirectory(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).sort() : [];
}
