// What the errors of DuckDB say about their cause.

/** Whether a damaged part is the probable cause. */
export function isDamageError(error: unknown): boolean {
  return /^IO Error: (Corrupt database file|Could not read)|^Serialization Error/.test(messageOf(error));
}

/**
 * Whether DuckDB has invalidated its instance: every later statement fails. The known cause is a disk error (EIO) in the fsync with
 * which DuckDB creates the file of a part. All other disk errors, and a full disk, concern only the part that is being written.
 */
export function isFatalError(error: unknown): boolean {
  return messageOf(error).startsWith('FATAL Error');
}

/**
 * Errors about the data, after which a retry cannot succeed. After any other error (disk, memory) it can. The error "Attempting to
 * execute" is excluded: DuckDB reports it for a statement that was cancelled.
 */
export function isDataError(error: unknown): boolean {
  return /^(?!Invalid Input Error: Attempting to execute)(Conversion|Invalid Input|Constraint|Out of Range|Invalid type|Cast) Error/i.test(
    messageOf(error),
  );
}

/** Errors that say nothing about the records that were read, such as too many open files. */
export function isSystemError(error: unknown): boolean {
  return /^(Out of Memory|Interrupt|Connection) Error|^IO Error: (Cannot open|Could not (set lock on|read from) file)/.test(
    messageOf(error),
  );
}

/** The first line of the message. */
export function messageOf(error: unknown): string {
  return (error as Error).message.split('\n', 1)[0] ?? '';
}
