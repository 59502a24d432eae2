// Errors of DuckDB that say more than that a statement has failed.

const DAMAGE_ERROR = /Corrupt database file|^IO Error: Could not read|^Serialization Error/;

/** Whether a damaged part is the probable cause. */
export function isDamageError(error: unknown): boolean {
  return error instanceof Error && DAMAGE_ERROR.test(error.message);
}

/**
 * Whether DuckDB has invalidated its instance: every later statement fails. The known cause is a disk error (EIO) in the fsync with
 * which DuckDB creates the file of a part. All other disk errors, and a full disk, concern only the part that is being written.
 */
export function isFatalError(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('FATAL Error');
}
