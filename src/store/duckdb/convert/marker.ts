// The marker: a DuckDB file with the name of the store of earlier releases. Releases up to 0.2.0 look for that file. Without it they
// would start with an empty store; they refuse the marker, because its schema version is newer than theirs. It is as DuckDB 1.5.5
// wrote it, with storage version v1.0.0: create table schema_version (version integer not null); insert into schema_version values
// (5); create table moved_to_parts (unused boolean).
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { isDiskFull } from '../../../system/disk-full.ts';
import { writeFileDurably } from '../../../system/files.ts';
import { cannotUse, MANIFEST_FILE, PARTS_DIRECTORY } from '../manifest.ts';

/** The store of earlier releases, or the marker. */
export const OLD_STORE_FILE = 'dendro.duckdb';

/** This name is in the marker, and in no store. */
const TABLE = 'moved_to_parts';
const MAX_BYTES = 1024 * 1024;

export function createMarker(): Buffer {
  return gunzipSync(Buffer.from(MARKER, 'base64'));
}

function isMarker(file: string): boolean {
  return statSync(file).size <= MAX_BYTES && readFileSync(file).includes(TABLE);
}

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

/** Adds the marker to a new data directory, or to a restored backup. On a full disk, the next start adds it. */
export async function addMarker(dataDirectory: string): Promise<void> {
  const file = join(dataDirectory, OLD_STORE_FILE);
  if (existsSync(file)) return;
  await writeFileDurably(file, createMarker()).catch(error => {
    if (!isDiskFull(error)) throw error;
  });
}

/** Compressed. */
const MARKER =
  'H4sIAAAAAAACA+3av0/bQBTA8XchCSklQDfUoStDJUSFQO1WiQ5IMLBQtVNk5S4kQkmQA+lY1rIh9R/gb2CBlSn0H0Dq3L+AGcn1+UfsUtIiJsh9P4pkn31+d8/xkHdO+aq7cPHz9PzD9trGe7mf/pvFlcWV0ef127r2vOXlhhYAAAAAAPAIfPl4tFA82fql7j79Yng8XRyoxJsCtw4AAAAAgCej47/effXy+3TaDm6RB9T/vP8HAAAAAOBxOfn2brW6dD1ImnNaJupS0KK0FBpSbHutTiteFajbY/ZjpNz2/F3jZ+cHMtPu9o2u7Xdre56/37uUqG/5oHPQM9qErakg2BFppisM9tBhIoxYCYKGSNrhP0P16k3T9mp94/da3U4y1GTStIGr+bF+iLKhBnHr1rhnSd4247CXFjEi0UwGEo2vguAy3hsujZhkatmSibHhD+fy6yXxxY1w+9VOptCMY6t87NIwdimL/c8Ls3WZ3HzDU2p0zHS2tle0czy//nlzM5nmhKOPfdHRvEuO5l12NO/JP1rKmbwrjn7fzxzNe8rRvJ87mve0o3lXHc17xtG8Z8cqm3vUTyk1rKMkrV1yZdunqMDLvZ0ek1sT5m0LYZVVr+P+gP/1P4ORP1VvAhfuBwAAAAAAAAAAAAAAAAAAAAAAd/kNoBe6/wBwAAA=';
