// Files that survive a crash: after a power cut a file has its old content or its new content, never half of either.
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces a file atomically and durably: temporary file, fsync, rename, fsync of the directory. One call at a time for each file. */
export async function writeFileDurably(file: string, content: Uint8Array | string): Promise<void> {
  const temporary = `${file}.new`;
  const handle = await open(temporary, 'w', 0o600);
  try {
    await handle.writeFile(content);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  await syncDirectory(dirname(file));
}

/** Replaces a file that may hold a secret. Synchronous, so that it can run under a file lock; mode 0600. */
export function writePrivateFile(file: string, content: string): void {
  const temporary = `${file}.${process.pid}.tmp`;
  const descriptor = openSync(temporary, 'w', 0o600);
  try {
    try {
      writeSync(descriptor, content);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true }); // it may contain a secret
    throw error;
  }
}

/** Syncs the entries of a directory: a new file survives a crash only after its directory was synced. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
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
  if (existsSync(directory)) return;
  createDirectory(dirname(directory));
  mkdirSync(directory, { mode: 0o700 });
  const parent = openSync(dirname(directory), 'r');
  try {
    fsyncSync(parent);
  } finally {
    closeSync(parent);
  }
}
