// The parts of an earlier backup that a new one uses again instead of copying them. Parts never change, so a hard link is enough.
import { existsSync, readdirSync } from 'node:fs';
import { link } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { listParts } from '../store/open-store.ts';
import { createDirectory, syncDirectory } from '../system/files.ts';
import { hashFile, OpenFile } from '../system/open-file.ts';
import { unpack } from './unpack.ts';

/** SHA-256 → path. */
export type EarlierParts = ReadonlyMap<string, string>;

/** Reads all parts of a backup, so that damaged ones are copied again. `onProgress` gets the bytes read so far. */
export async function readEarlierParts(
  backupDirectory: string,
  onProgress: (bytes: number) => void,
): Promise<EarlierParts> {
  const directory = join(backupDirectory, 'parts');
  const parts = new Map<string, string>();
  let read = 0;
  const onRead = (bytes: number) => {
    read += bytes;
    onProgress(read);
  };
  for (const name of existsSync(directory) ? readdirSync(directory) : []) {
    const path = join(directory, name);
    const hashed = await hashFile(path, onRead).catch(() => undefined); // a file that cannot be read is copied again
    if (hashed !== undefined) parts.set(hashed.sha256, path);
  }
  return parts;
}

/**
 * Adds the parts that the manifest of a copy names and the copy lacks. Also adds parts that the store has set aside, because the
 * earlier backup may have the only sound copy. Returns the paths of those that the earlier backup does not have.
 */
export async function addEarlierParts(directory: string, earlier: EarlierParts): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const { path, sha256, isSetAside } of await listParts(directory)) {
    const source = earlier.get(sha256);
    if (source === undefined && isSetAside) missing.push(path);
    if (source === undefined || existsSync(join(directory, path))) continue;
    createDirectory(dirname(join(directory, path)));
    await link(source, join(directory, path)).catch(() => copyFile(source, path, directory));
    await syncDirectory(dirname(join(directory, path)));
  }
  return missing;
}

/** For a file system without hard links. */
async function copyFile(source: string, path: string, directory: string): Promise<void> {
  const file = new OpenFile(source, path);
  try {
    await unpack([file], directory);
  } finally {
    await file.close();
  }
}
