// Errors of DuckDB that a damaged or missing file can cause.

const STORAGE_ERROR = /^(IO|INTERNAL|FATAL|Serialization) Error|Corrupt database file/;

/** Whether a damaged part may be the cause. Other causes are possible, such as too many open files. */
export function isStorageError(error: unknown): boolean {
  return error instanceof Error && STORAGE_ERROR.test(error.message);
}
