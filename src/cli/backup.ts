// dendro backup DIR: copies the data of a running server (--url) or of a data directory that no server uses (--data), and
// verifies the copy by reading every file. If DIR is an earlier backup, only parts that it does not have are copied.
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type BackupReport, formatReport, REPORT_FILE, totalCounts } from '../backup/backup-report.ts';
import { readDataFiles } from '../backup/data-files.ts';
import { addEarlierParts, type EarlierParts, readEarlierParts } from '../backup/earlier-parts.ts';
import { type ReadBackOptions, readBack } from '../backup/read-back.ts';
import { replaceBackup } from '../backup/replace-backup.ts';
import { unpack } from '../backup/unpack.ts';
import { type Invocation, readStoreOptions, readTokensPath } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import { spoolDirectoryIn } from '../intake/spool.ts';
import { readCompleteBytes } from '../intake/spool-state.ts';
import { hasOldStore, type StoreOptions, storeNameOf } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import { lockDirectory } from '../system/directory-lock.ts';
import { writeFileDurably } from '../system/files.ts';
import { readTar, type TarFile } from '../system/tar.ts';
import { readVersion } from '../system/version.ts';
import { createProgressBar } from './progress-bar.ts';
import {
  createResponseError,
  describeUnreachable,
  type RunningServer,
  readRunningServer,
} from './running-server.ts';
import { fetchWithToken } from './send-request.ts';

/** The target of the copy, and the parts that it can use again. */
interface Copy {
  readonly directory: string;
  readonly earlier: EarlierParts;
}

export async function backup(invocation: Invocation): Promise<void> {
  const directory = readTarget(invocation);
  const server = readRunningServer(invocation);
  const options = readStoreOptions(invocation);
  const tokensFile = readTokensPath(invocation);
  const write = async (incomplete: string) => {
    const earlier = await withProgress('bytes of the last backup compared', onProgress =>
      readEarlierParts(directory, onProgress),
    );
    const copy = { directory: incomplete, earlier };
    return server === undefined ? copyDataDirectory(options, tokensFile, copy) : download(server, copy);
  };
  const report = await replaceBackup(directory, write, previous =>
    process.stderr.write(
      `dendro: an interrupted backup left ${previous}, which was renamed to ${directory}\n`,
    ),
  );
  const { stored, spooled } = totalCounts(report);
  process.stdout.write(
    `${directory}: ${stored + spooled} records (${stored} stored, ${spooled} in the spool) as of ${report.takenAt}; every file was verified\n`,
  );
}

function readTarget({ positionals }: Invocation): string {
  const [target, ...others] = positionals;
  if (target === undefined || target === '' || others.length > 0)
    throw new UsageError('name exactly one directory for the copy: dendro backup DIR');
  return existsSync(target) ? realpathSync(target) : resolve(target);
}

/** Copies a data directory that no server uses. The directory is locked meanwhile. */
async function copyDataDirectory(
  options: StoreOptions,
  tokensFile: string,
  copy: Copy,
): Promise<BackupReport> {
  const { dataDirectory } = options;
  if (!existsSync(dataDirectory))
    throw new OperatorError(
      `there is no data directory ${dataDirectory}; name it with --data, or a server with --url`,
    );
  const store = storeNameOf(options);
  if (store === 'duckdb' && (await hasOldStore(dataDirectory)))
    throw new OperatorError(
      `${dataDirectory} has the store of an earlier release; copy the directory while no server uses it (cp -a), or take the backup with that release`,
    );
  const lock = await lockDirectory(dataDirectory);
  const takenAt = formatTimestamp(systemClock());
  let completeBytes: number;
  try {
    // How many bytes of the last spool segment were complete at the last clean stop: `readBack` allows an unfinished write only
    // after them. Read from the original, because the copy does not have clean-stop.json.
    completeBytes = await readCompleteBytes(spoolDirectoryIn(dataDirectory));
    await writeFiles(readDataFiles(dataDirectory, tokensFile, new Set(copy.earlier.keys())), copy);
  } finally {
    lock.release();
  }
  const records = await readBackCopy(copy, { store, completeBytes });
  const report = { version: readVersion(), takenAt, store, records };
  await writeFileDurably(join(copy.directory, REPORT_FILE), formatReport(report));
  return report;
}

/** Downloads the backup of a running server. Throws unless the copy has exactly the records that the server reported for it. */
async function download(server: RunningServer, copy: Copy): Promise<BackupReport> {
  const body = await requestBackup(server, copy);
  const paths = await writeFiles(readTar(body), copy).catch((error: Error) => {
    const reason = error.cause === undefined ? error.message : describeUnreachable(server, error);
    throw new OperatorError(`the download is not complete, nothing was kept: ${reason}`);
  });
  if (!paths.has(REPORT_FILE)) throw new OperatorError('the download is not complete, nothing was kept');
  const report = JSON.parse(readFileSync(join(copy.directory, REPORT_FILE), 'utf8')) as BackupReport;
  const found = await readBackCopy(copy, { store: report.store });
  if (JSON.stringify(found) !== JSON.stringify(report.records))
    throw new OperatorError(
      `the copy does not have the records that the server reported, nothing was kept: reported ${JSON.stringify(report.records)}, found ${JSON.stringify(found)}`,
    );
  return report;
}

async function requestBackup(server: RunningServer, { earlier }: Copy): Promise<AsyncIterable<Uint8Array>> {
  const init = { method: 'POST', body: JSON.stringify({ have: [...earlier.keys()] }) };
  const response = await fetchWithToken(server, '/api/admin/backup', init).catch((error: Error) => {
    throw error instanceof OperatorError ? error : new OperatorError(describeUnreachable(server, error));
  });
  if (response.status === 200 && response.body !== null) return response.body;
  const hint = {
    403: 'a backup needs a token with the scope admin: dendro token create --name backup --scope admin',
    404: '--url must be the URL of the internal listener',
  }[response.status];
  throw createResponseError(server.url, response.status, await response.text(), hint);
}

function writeFiles(files: AsyncIterable<TarFile>, { directory }: Copy): Promise<ReadonlySet<string>> {
  return withProgress('bytes', onProgress => unpack(files, directory, onProgress));
}

async function withProgress<T>(
  description: string,
  work: (onProgress: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  const bar = createProgressBar('backup', process.stderr);
  return work(bytes => bar.update(undefined, `${bytes} ${description}`)).finally(() => bar.clear());
}

/** Completes the copy with earlier parts, reads every file and counts the records. Throws an OperatorError if that fails. */
async function readBackCopy(
  { directory, earlier }: Copy,
  options: ReadBackOptions,
): Promise<BackupReport['records']> {
  try {
    for (const path of await addEarlierParts(directory, earlier))
      process.stderr.write(
        `dendro: the backup does not have ${path}: the part is damaged or missing, and was set aside\n`,
      );
    return await readBack(directory, options);
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new OperatorError(`the copy cannot be read back, nothing was kept: ${reason}`);
  }
}
