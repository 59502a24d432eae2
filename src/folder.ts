// Makes a folder that only its owner may enter, and those above it, durably.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

/** Not `recursive`: where a file system answers ENOENT for an existing parent, as /proc does, Node loops for ever. */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
  const parent = openSync(dirname(folder), 'r');
  try {
    fsyncSync(parent);
  } finally {
    closeSync(parent);
  }
}
