// The parts of an earlier backup that a new one uses again instead of copying them. Parts never change, so a hard link is enough.
import { existsSync, readdirSync } from 'node:fs';
import { copyFile, link } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { listParts } from '../store/open-store.ts';
import { createDirectory, syncDirectory, syncFile } from '../system/files.ts';
import { hashFile } from '../system/open-file.ts';

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
    const target = join(directory, path);
    createDirectory(dirname(target));
    await link(source, target).catch(async () => {
      await copyFile(source, target); // a file system without hard links
      await syncFile(target);
    });
    await syncDirectory(dirname(target));
  }
  return missing;
}
