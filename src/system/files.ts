// Files that survive a crash: after a power cut a file has its old content or its new content, never half of either.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface DurableWrite {
  /** The temporary file, in the same directory. A leftover of a crash is overwritten. */
  readonly temporary?: string;
  /** Can throw to keep the old file. No other code of this process runs between this call and the rename. */
  readonly beforeRename?: () => void;
  /**
   * The new file gets the owner and the mode of the old one. If there is no old one and this process runs as root, it gets the
   * owner of the directory. So a command that root runs leaves a file that the service can read.
   */
  readonly keepOwner?: true;
}

/**
 * Replaces a file atomically and durably: temporary file, fdatasync, rename, fsync of the directory. The new file has mode 0600,
 * unless `keepOwner` is set and there is an old file. If it fails before the rename, such as on a full disk, the old file is
 * unchanged and no temporary file remains. Two calls for the same file must not overlap, unless each has its own `temporary`.
 */
export async function writeFileDurably(
  file: string,
  content: Uint8Array | string | AsyncIterable<Uint8Array>,
  { temporary = `${file}.new`, beforeRename = () => {}, keepOwner }: DurableWrite = {},
): Promise<void> {
  try {
    const handle = await open(temporary, 'w', 0o600);
    try {
      if (keepOwner) await copyOwner(file, handle);
      await writeFile(handle, content); // continues after a short write
      await handle.datasync();
    } finally {
      await handle.close();
    }
    beforeRename();
    renameSync(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // it may contain a secret; report the first error
    throw error;
  }
  await syncDirectory(dirname(file));
}

async function copyOwner(file: string, handle: FileHandle): Promise<void> {
  const old = statSync(file, { throwIfNoEntry: false });
  const own = await handle.stat();
  const owner = old ?? (own.uid === 0 ? statSync(dirname(file)) : own);
  if (owner.uid !== own.uid || owner.gid !== own.gid) await handle.chown(owner.uid, owner.gid);
  if (old !== undefined) await handle.chmod(old.mode & 0o777);
}

/** Syncs the entries of a directory: a new file survives a crash only after its directory was synced. */
export function syncDirectory(directory: string): Promise<void> {
  return syncFile(directory);
}

/** Syncs the content of a file that another writer has closed. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Creates a directory and its missing parents durably, mode 0700. Does not use `recursive`: on file systems that report
 * ENOENT for an existing parent, such as /proc, Node would loop forever.
 */
export function createDirectory(directory: string): void {
  const parent = dirname(directory);
  if (existsSync(directory)) {
    statSync(`${directory}/`); // throws ENOTDIR if it is a file
    // The process that created it may have been killed before it synced the parent.
    try {
      syncEntries(parent);
    } catch {
      // Ignored. For example, this user cannot read the parent: then another user created the directory, not a killed
      // process of this user.
    }
    return;
  }
  createDirectory(parent);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Another process may have created it meanwhile.
    if (code !== 'EEXIST' || !statSync(directory, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
  syncEntries(parent);
}

/** Like `syncDirectory`, but synchronous. */
function syncEntries(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
