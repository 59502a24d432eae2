// Errors of DuckDB that say more than that a statement has failed.

const STORAGE_ERROR = /^(IO|INTERNAL|FATAL|Serialization) Error|Corrupt database file/;

/** Whether a damaged part may be the cause. Other causes are possible, such as too many open files. */
export function isStorageError(error: unknown): boolean {
  return error instanceof Error && STORAGE_ERROR.test(error.message);
}

/**
 * Whether DuckDB has invalidated its instance: every later statement fails. The known cause is a disk error (EIO) in the fsync with
 * which DuckDB creates the file of a part. All other disk errors, and a full disk, concern only the part that is being written.
 */
export function isFatalError(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('FATAL Error');
}
