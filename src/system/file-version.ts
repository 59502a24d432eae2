// Detects that a file was changed or replaced.
import { statSync } from 'node:fs';

/** The version of a file that does not exist. */
export const MISSING = 'missing';

/** Returns a text that differs after every change of the file, of its permissions, or of the link that names it. */
export function readFileVersion(file: string): string {
  try {
    const { ino, size, mtimeMs, mode } = statSync(file);
    return `${ino} ${size} ${mtimeMs} ${mode}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? MISSING : `unreadable: ${code}`;
  }
}
