// Checks that a data directory has an embedded store, for commands that must not create one.
import { statSync } from 'node:fs';
import { OperatorError } from '../domain/errors.ts';
import { hasStoreFiles } from '../store/open-store.ts';
import { describeFileError } from '../system/file-access.ts';

/** Throws an OperatorError if the directory has no embedded store, or if this user cannot access it. */
export function requireEmbeddedStore(dataDirectory: string): void {
  try {
    statSync(dataDirectory);
    if (hasStoreFiles('duckdb', dataDirectory)) return;
  } catch (error) {
    const systemError = error as NodeJS.ErrnoException;
    if (systemError.code !== 'ENOENT')
      throw new OperatorError(
        `cannot read the embedded store in ${dataDirectory}: ${describeFileError(dataDirectory, systemError)}`,
      );
  }
  throw new OperatorError(`there is no embedded store in ${dataDirectory}`);
}
