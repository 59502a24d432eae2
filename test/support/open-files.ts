// The files that this process has open. Needs Linux.
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the paths of the open files in a directory and below it, one for each descriptor. */
export function listOpenFiles(directory: string): string[] {
  return readdirSync('/proc/self/fd')
    .flatMap(descriptor => readLink(join('/proc/self/fd', descriptor)) ?? [])
    .filter(path => path.startsWith(`${directory}/`))
    .sort();
}

/** Undefined if the descriptor was closed meanwhile. */
function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
