// dendro backup DIR: copies the data of a running server (--url) or of a data directory that no server uses (--data), and
// verifies the copy by reading every record. DIR appears only when the copy is complete and verified.
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type BackupReport, formatReport, REPORT_FILE, totalCounts } from '../backup/backup-report.ts';
import { readDataFiles } from '../backup/data-files.ts';
import { type ReadBackOptions, readBack } from '../backup/read-back.ts';
import { unpack } from '../backup/unpack.ts';
import { type Invocation, readStoreOptions, readTokensPath } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import { readCompleteBytes } from '../intake/clean-stop.ts';
import { spoolDirectoryIn } from '../intake/spool.ts';
import { type StoreOptions, storeNameOf } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import { lockDirectory } from '../system/directory-lock.ts';
import { createDirectory, syncDirectory, writeFileDurably } from '../system/files.ts';
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

export async function backup(invocation: Invocation): Promise<void> {
  const directory = readTarget(invocation);
  // --memory-limit is allowed with --url too, because this process opens the copy and reads it back.
  const server = readRunningServer(invocation, ['memory-limit']);
  const options = readStoreOptions(invocation);
  const incomplete = createIncompleteDirectory(directory);
  const cancelCleanup = removeOnSignal(incomplete);
  try {
    const report =
      server === undefined
        ? await copyDataDirectory(options, readTokensPath(invocation), incomplete)
        : await download(server, incomplete);
    moveIntoPlace(incomplete, directory);
    await syncDirectory(dirname(directory));
    const { stored, spooled } = totalCounts(report);
    process.stdout.write(
      `${directory}: ${stored + spooled} records (${stored} stored, ${spooled} in the spool) as of ${report.takenAt}; every record was read back\n`,
    );
  } catch (error) {
    rmSync(incomplete, { recursive: true, force: true });
    throw error;
  } finally {
    cancelCleanup();
  }
}

function readTarget({ positionals }: Invocation): string {
  const [target, ...others] = positionals;
  if (target === undefined || target === '' || others.length > 0)
    throw new UsageError('name exactly one directory for the copy: dendro backup DIR');
  const directory = resolve(target);
  if (existsSync(directory) && !isEmptyDirectory(directory))
    throw new OperatorError(
      `${target} is not an empty directory; name a directory that is empty or does not exist`,
    );
  return directory;
}

function isEmptyDirectory(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

/** A directory next to the target, on the same file system, with a name that says that it is not a backup. */
function createIncompleteDirectory(directory: string): string {
  try {
    createDirectory(dirname(directory));
    return mkdtempSync(`${directory}.incomplete-`);
  } catch (error) {
    throw new OperatorError(`cannot create a directory next to ${directory}: ${(error as Error).message}`);
  }
}

/** Atomic. Replaces `directory` if it exists and is empty. */
function moveIntoPlace(incomplete: string, directory: string): void {
  try {
    renameSync(incomplete, directory);
  } catch (error) {
    throw new OperatorError(
      `cannot move the copy to ${directory}: ${(error as Error).message}; if it is a mount point, name a directory below it`,
    );
  }
}

/** On SIGINT or SIGTERM, removes the directory and exits. Returns a function that cancels this. */
function removeOnSignal(incomplete: string): () => void {
  const exitCodes = { SIGINT: 130, SIGTERM: 143 };
  const removers = Object.entries(exitCodes).map(([signal, code]) => {
    const listener = () => {
      rmSync(incomplete, { recursive: true, force: true });
      process.exit(code);
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return () => {
    for (const removeListener of removers) removeListener();
  };
}

/** Copies a data directory that no server uses. The directory is locked meanwhile. */
async function copyDataDirectory(
  options: StoreOptions,
  tokensFile: string,
  target: string,
): Promise<BackupReport> {
  const { dataDirectory } = options;
  if (!existsSync(dataDirectory))
    throw new OperatorError(
      `there is no data directory ${dataDirectory}; name it with --data, or a server with --url`,
    );
  const store = storeNameOf(options);
  const lock = await lockDirectory(dataDirectory);
  const takenAt = formatTimestamp(systemClock());
  let completeBytes: number;
  try {
    // How many bytes of the last spool segment were complete at the last clean stop: `readBack` allows an unfinished write only
    // after them. Read from the original, because the copy does not have clean-stop.json.
    completeBytes = await readCompleteBytes(spoolDirectoryIn(dataDirectory));
    await unpackWithProgress(readDataFiles(dataDirectory, tokensFile), target);
  } finally {
    lock.release();
  }
  const records = await readBackCopy(target, { store, completeBytes });
  const report = { version: readVersion(), takenAt, store, records };
  await writeFileDurably(join(target, REPORT_FILE), formatReport(report));
  return report;
}

/** Downloads the backup of a running server. Throws unless the copy has exactly the records that the server reported for it. */
async function download(server: RunningServer, target: string): Promise<BackupReport> {
  const body = await requestBackup(server);
  const paths = await unpackWithProgress(readTar(body), target).catch((error: Error) => {
    const reason = error.cause === undefined ? error.message : describeUnreachable(server, error);
    throw new OperatorError(`the download is not complete, nothing was kept: ${reason}`);
  });
  if (!paths.has(REPORT_FILE)) throw new OperatorError('the download is not complete, nothing was kept');
  const report = JSON.parse(readFileSync(join(target, REPORT_FILE), 'utf8')) as BackupReport;
  const found = await readBackCopy(target, { store: report.store });
  if (JSON.stringify(found) !== JSON.stringify(report.records))
    throw new OperatorError(
      `the copy does not have the records that the server reported, nothing was kept: reported ${JSON.stringify(report.records)}, found ${JSON.stringify(found)}`,
    );
  return report;
}

async function requestBackup(server: RunningServer): Promise<AsyncIterable<Uint8Array>> {
  const response = await fetchWithToken(server, '/api/admin/backup').catch((error: Error) => {
    throw error instanceof OperatorError ? error : new OperatorError(describeUnreachable(server, error));
  });
  if (response.status === 200 && response.body !== null) return response.body;
  const hint = {
    403: 'a backup needs a token with the scope admin: dendro token create --name backup --scope admin',
    404: '--url must be the URL of the internal listener',
  }[response.status];
  throw createResponseError(server.url, response.status, await response.text(), hint);
}

async function unpackWithProgress(
  files: AsyncIterable<TarFile> | Iterable<TarFile>,
  target: string,
): Promise<ReadonlySet<string>> {
  const bar = createProgressBar('backup', process.stderr);
  return unpack(files, target, bytes => bar.update(undefined, `${bytes} bytes`)).finally(() => bar.clear());
}

/** Reads and counts every record of the copy. Throws an OperatorError if that fails. */
async function readBackCopy(directory: string, options: ReadBackOptions): Promise<BackupReport['records']> {
  try {
    return await readBack(directory, options);
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new OperatorError(`the copy cannot be read back, nothing was kept: ${reason}`);
  }
}
