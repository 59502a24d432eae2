// Checks that a data directory has an embedded store, for commands that must not create one.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { STORE_FILE } from '../system/data-directory.ts';
import { describeFileError } from '../system/file-access.ts';

/** Throws an OperatorError if the directory has no embedded store, or if this user cannot access it. */
export function requireEmbeddedStore(dataDirectory: string): void {
  const file = join(dataDirectory, STORE_FILE);
  try {
    statSync(file);
  } catch (error) {
    const systemError = error as NodeJS.ErrnoException;
    throw new OperatorError(
      systemError.code === 'ENOENT'
        ? `there is no embedded store in ${dataDirectory}`
        : `cannot read the embedded store in ${dataDirectory}: ${describeFileError(file, systemError)}`,
    );
  }
}
