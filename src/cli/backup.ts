// dendro backup DIR: copies the data of a running server, or of a data directory that no server uses, and verifies the copy by
// reading every file. If DIR is an earlier backup, only parts that it does not have are copied.
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { addEarlierParts, type EarlierParts, readEarlierParts } from '../backup/earlier-parts.ts';
import { type RecordCounts, readBack } from '../backup/read-back.ts';
import { replaceBackup } from '../backup/replace-backup.ts';
import { type BackupReport, formatReport, REPORT_FILE } from '../backup/take-backup.ts';
import { unpack } from '../backup/unpack.ts';
import { type AppConfig, type Invocation, readAppConfig } from '../config.ts';
import { formatDamage } from '../domain/damage.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { hasOldStore, inspectStore } from '../store/open-store.ts';
import { writeFileDurably } from '../system/files.ts';
import { readTar } from '../system/tar.ts';
import type { Io } from './io.ts';
import {
  createResponseError,
  describeUnreachable,
  findServer,
  noDataDirectory,
  openLocal,
  type Target,
  wrongListener,
} from './target.ts';
import { createProgressBar } from './terminal.ts';

export async function backup(invocation: Invocation, io: Io): Promise<void> {
  const directory = readDirectory(invocation);
  const server = findServer(invocation);
  const config = readAppConfig(invocation);
  const write = async (incomplete: string) => {
    const earlier = await withProgress(io, 'bytes of the last backup compared', onProgress =>
      readEarlierParts(directory, onProgress),
    );
    const target = server ?? (await openDirectory(config, io));
    const report = await download(target, incomplete, earlier, io).finally(() => target.close());
    return verify(report, incomplete, earlier, io);
  };
  const onRestored = (previous: string) =>
    io.stderr.write(`dendro: an interrupted backup left ${previous}, which was renamed to ${directory}\n`);
  const report = await replaceBackup(directory, write, onRestored);
  const counts = Object.values(report.records);
  const stored = counts.reduce((sum, kind) => sum + kind.stored, 0);
  const spooled = counts.reduce((sum, kind) => sum + kind.spooled, 0);
  io.stdout.write(
    `${directory}: ${stored + spooled} records (${stored} stored, ${spooled} in the spool) as of ${report.takenAt}; every file was verified\n`,
  );
}

function readDirectory({ positionals }: Invocation): string {
  const [directory, ...others] = positionals;
  if (directory === undefined || directory === '' || others.length > 0)
    throw new UsageError('name exactly one directory for the copy: dendro backup DIR');
  return existsSync(directory) ? realpathSync(directory) : resolve(directory);
}

async function openDirectory(config: AppConfig, io: Io): Promise<Target> {
  const { dataDirectory } = config.store;
  if (!existsSync(dataDirectory)) throw noDataDirectory(dataDirectory);
  if (config.storeName === 'duckdb' && (await hasOldStore(dataDirectory)))
    throw new OperatorError(
      `${dataDirectory} has the store of an earlier release; copy the directory while no server uses it (cp -a), or take the backup with that release`,
    );
  const { setAside, damages } = await inspectStore(config.storeName, { dataDirectory, onlySizes: true });
  const [damage] = [...setAside, ...damages];
  if (damage !== undefined) throw new OperatorError(`nothing was copied: ${formatDamage(damage)}`);
  const target = await openLocal(config, io);
  if (!target.isSpoolDamaged) return target;
  await target.close();
  throw new OperatorError(
    `nothing was copied: the spool of ${dataDirectory} was damaged, or files of it are missing; run the command again to copy what is left`,
  );
}

/** Writes the backup into the directory, without the parts that the earlier one has. */
async function download(
  target: Target,
  directory: string,
  earlier: EarlierParts,
  io: Io,
): Promise<BackupReport> {
  const describe = (error: Error) =>
    target.url === undefined ? error.message : describeUnreachable(target.url, error);
  const init = { method: 'POST', body: JSON.stringify({ have: [...earlier.keys()] }) };
  const response = await target.fetch('/api/admin/backup', init).catch((error: Error) => {
    throw error instanceof OperatorError ? error : new OperatorError(describe(error));
  });
  const { status, body } = response;
  if (status !== 200 || body === null) {
    if (status === 404) throw wrongListener(target, 'internal');
    const hint =
      status === 403
        ? 'a backup needs a token with the scope admin: dendro token create --name backup --scope admin'
        : undefined;
    throw createResponseError(target, status, await response.text(), hint);
  }
  const paths = await withProgress(io, 'bytes', onProgress =>
    unpack(readTar(body), directory, onProgress),
  ).catch((error: Error) => {
    const reason = error.cause === undefined ? error.message : describe(error);
    throw new OperatorError(`the download is not complete, nothing was kept: ${reason}`);
  });
  if (!paths.has(REPORT_FILE)) throw new OperatorError('the download is not complete, nothing was kept');
  return JSON.parse(readFileSync(join(directory, REPORT_FILE), 'utf8')) as BackupReport;
}

/** Completes the copy with earlier parts, reads every file, and adds the number of records to the report. */
async function verify(
  report: BackupReport,
  directory: string,
  earlier: EarlierParts,
  io: Io,
): Promise<BackupReport & { readonly records: RecordCounts }> {
  try {
    for (const path of await addEarlierParts(directory, earlier))
      io.stderr.write(
        `dendro: the backup does not have ${path}: the part is damaged or missing, and was set aside\n`,
      );
    const verified = { ...report, records: await readBack(directory, report.store) };
    await writeFileDurably(join(directory, REPORT_FILE), formatReport(verified));
    return verified;
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new OperatorError(`the copy cannot be read back, nothing was kept: ${reason}`);
  }
}

async function withProgress<T>(
  { stderr }: Io,
  description: string,
  work: (onProgress: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  const bar = createProgressBar('backup', stderr);
  return work(bytes => bar.update(undefined, `${bytes} ${description}`)).finally(() => bar.clear());
}
