// Files that only their owner may read, replaced as a whole, so that no reader ever sees half of one.
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';

/** Written aside, flushed, then renamed over the old one. */
export function writePrivateFile(file: string, content: string): void {
  const draft = `${file}.${process.pid}.tmp`;
  const descriptor = openSync(draft, 'w', 0o600);
  try {
    try {
      writeSync(descriptor, content);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true }); // it may hold a secret
    throw error;
  }
}
