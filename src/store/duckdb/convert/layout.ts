// Tells from the files of a data directory whether its store is of an earlier release.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cannotUse, MANIFEST_FILE, PARTS_DIRECTORY } from '../manifest.ts';
import { isMarker, OLD_STORE_FILE } from './marker.ts';

/** Whether the store is of an earlier release, and must be converted before it can be opened. */
export function hasOldStore(dataDirectory: string): boolean {
  const file = join(dataDirectory, OLD_STORE_FILE);
  return existsSync(file) && !hasManifest(dataDirectory) && !isMarker(file);
}

/** Throws an OperatorError if the data directory had parts, but has no manifest any more. */
export function refuseLostManifest(dataDirectory: string): void {
  const file = join(dataDirectory, OLD_STORE_FILE);
  if (existsSync(file) && !hasManifest(dataDirectory) && isMarker(file))
    throw cannotUse(
      dataDirectory,
      `${join(dataDirectory, MANIFEST_FILE)} does not exist, although a server has used this data directory (to start with an empty store, delete ${file} and ${PARTS_DIRECTORY})`,
    );
}

/** A conversion that was interrupted at the end has left the manifest in `parts/`. */
function hasManifest(dataDirectory: string): boolean {
  return ['', PARTS_DIRECTORY].some(directory => existsSync(join(dataDirectory, directory, MANIFEST_FILE)));
}
