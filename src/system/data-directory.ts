// Checks a data directory before it is used: this user can write to it, its files belong to this user, and its format
// is not newer than the one that this version of Dendro can read.
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { isDiskFull } from './disk-full.ts';
import { checkWritable, describeUser, findOwner, isAccessDenied } from './file-access.ts';
import { createDirectory, writeFileDurably } from './files.ts';
import { readVersion } from './version.ts';

/** Creates the directory if it is missing. If this user cannot use it, throws an OperatorError that says what to do. */
export function prepareDataDirectory(dataDirectory: string): void {
  requireUsable(dataDirectory, createDirectory);
}

/** Throws the errors of `prepareDataDirectory` and `checkAndRecordFormat`, and creates nothing that stays. */
export function inspectDataDirectory(dataDirectory: string): void {
  requireUsable(dataDirectory, checkWritable);
  refuseNewerFormat(dataDirectory);
}

/** `createOrCheck` creates a missing directory, or checks that this user can create it or write to it. Throws if that fails. */
function requireUsable(dataDirectory: string, createOrCheck: (directory: string) => void): void {
  const directory = resolve(dataDirectory);
  let ownUid: number | undefined;
  let storeUid: number | undefined;
  try {
    createOrCheck(directory);
    if (existsSync(directory)) ownUid = findOwnerOfNewFiles(directory);
    storeUid = findOwnerOfStore(directory);
  } catch (error) {
    throw cannotWrite(dataDirectory, error as NodeJS.ErrnoException);
  }
  // Root could write to it, but would leave files that the owner cannot read.
  if (ownUid !== undefined && storeUid !== undefined && ownUid !== storeUid) {
    const isOwnDirectory = storeUid === 0 && findOwner(directory) === ownUid; // root has used a directory of this user
    const fix = isOwnDirectory
      ? `while no server uses it, run as root: chown -R ${ownUid} ${dataDirectory}`
      : `run it as the owner: sudo -u '#${storeUid}' dendro …`;
    throw new OperatorError(
      `the ${isOwnDirectory ? 'files in the ' : ''}data directory ${dataDirectory} belong${isOwnDirectory ? '' : 's'} to ${describeUser(storeUid)}, but this process runs as ${describeUser(ownUid)}; ${fix}`,
    );
  }
}

/**
 * Creates a file and reads its owner, which can differ from the user of this process: some file systems, such as NFS, map users.
 * Undefined if the disk is full.
 */
function findOwnerOfNewFiles(directory: string): number | undefined {
  const file = join(directory, `write-test.${process.pid}`);
  try {
    const descriptor = openSync(file, 'w', 0o600);
    const { uid } = fstatSync(descriptor);
    closeSync(descriptor);
    rmSync(file, { force: true });
    return uid;
  } catch (error) {
    if (isDiskFull(error)) return undefined;
    throw error;
  }
}

/** The first one that exists tells who owns the data: a part of the store, its file in earlier releases, or the spool. */
const OWNED_FILES = ['manifest.json', 'dendro.duckdb', 'spool'];

function findOwnerOfStore(directory: string): number | undefined {
  return OWNED_FILES.map(name => findOwner(join(directory, name))).find(uid => uid !== undefined);
}

function cannotWrite(dataDirectory: string, error: NodeJS.ErrnoException): OperatorError {
  const [reason] = error.message.split(', ', 1);
  const uid = process.getuid?.() ?? 0;
  const owner = findOwner(dataDirectory);
  const isDenied = isAccessDenied(error);
  const verb = owner === undefined ? 'create' : 'write to';
  const belongs = owner === undefined || !isDenied ? '' : `, which belongs to ${describeUser(owner)}`;
  // A directory with files may be in use by its owner, so its owner must not change.
  const fix = isEmpty(dataDirectory)
    ? `as root, run: ${owner === undefined ? 'install -d -o' : 'chown'} ${uid} ${dataDirectory}; or `
    : `run this as its owner: sudo -u '#${owner}' dendro …; or `;
  return new OperatorError(
    `${describeUser(uid)} cannot ${verb} the data directory ${dataDirectory}${belongs}: ${reason}; ${isDenied ? fix : ''}choose another directory with --data`,
  );
}

/** True if it does not exist; false if this user cannot read it. */
function isEmpty(directory: string): boolean {
  try {
    return !existsSync(directory) || readdirSync(directory).length === 0;
  } catch {
    return false;
  }
}

/** The format of the data directory. A release that writes files which earlier releases cannot read increases it. */
const FORMAT = 2;

/**
 * Throws an OperatorError if a newer version has changed the format; otherwise records the format and this version. Directories
 * of version 0.2.0 and earlier have no format file. The caller must hold the lock of the directory.
 */
export async function checkAndRecordFormat(dataDirectory: string): Promise<void> {
  const found = refuseNewerFormat(dataDirectory);
  const file = formatFileIn(dataDirectory);
  const own = { format: FORMAT, version: readVersion() };
  if (found?.format === own.format && found.version === own.version) return;
  try {
    await writeFileDurably(file, `${JSON.stringify(own)}\n`);
  } catch (error) {
    if (!isDiskFull(error)) throw error; // on a full disk, the next start writes the file
  }
}

interface Format {
  readonly format: number;
  readonly version: string;
}

/** Returns the format of the directory; undefined if it has none yet. */
function refuseNewerFormat(dataDirectory: string): Format | undefined {
  const found = readFormat(formatFileIn(dataDirectory));
  // Not `found.format > FORMAT`, which would accept a format that is not a number.
  if (found !== undefined && !(found.format <= FORMAT))
    throw new OperatorError(
      `the data directory ${dataDirectory} was written by Dendro ${found.version} in format ${found.format}; this is Dendro ${readVersion()}, which reads formats up to ${FORMAT}; install ${found.version} or later, or restore a backup from before the upgrade`,
    );
  return found;
}

function formatFileIn(dataDirectory: string): string {
  return join(resolve(dataDirectory), 'format.json');
}

function readFormat(file: string): Format | undefined {
  try {
    const { format, version } = JSON.parse(readFileSync(file, 'utf8'));
    return { format, version };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OperatorError(
      `cannot read the format of the data directory from ${file}: ${(error as Error).message}`,
    );
  }
}
