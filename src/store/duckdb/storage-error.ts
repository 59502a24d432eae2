// Errors of DuckDB that say more than that a statement has failed.

/** Whether a damaged part is the probable cause. */
export function isDamageError(error: unknown): boolean {
  const { message } = error as Error;
  return /^IO Error: (Corrupt database file|Could not read)|^Serialization Error/.test(message);
}

/**
 * Whether DuckDB has invalidated its instance: every later statement fails. The known cause is a disk error (EIO) in the fsync with
 * which DuckDB creates the file of a part. All other disk errors, and a full disk, concern only the part that is being written.
 */
export function isFatalError(error: unknown): boolean {
  return (error as Error).message.startsWith('FATAL Error');
}
