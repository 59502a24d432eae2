// Limits that no flag changes, with their reasons.

/** Tests set their own. */
export interface Limits {
  /** Of a result before compression. */
  readonly responseBytes: number;
  /** Of all responses that clients have not read yet. */
  readonly unsentBytes: number;
  /** Bytes per second that a client must read; 0: no minimum. */
  readonly minDownloadRate: number;
  /** Cache entries that are refreshed in parallel. */
  readonly warmConcurrency: number;
  /** Of received log data that is not in the store yet. */
  readonly intakeQueueBytes: number;
  /** The memory for remembering log requests for 10 minutes. */
  readonly idempotencyBytes: number;
  /** Bytes per second at which the body of a log request must arrive; 0: no minimum. */
  readonly minUploadRate: number;
}

const MIB = 1024 * 1024;

export const LIMITS: Limits = {
  // A row can grow sixfold when it is encoded, and one record of 1 MiB must fit.
  responseBytes: 16 * MIB,
  unsentBytes: 128 * MIB,
  minDownloadRate: 32 * 1024,
  warmConcurrency: 1,
  // More than twice the largest body: one sender gets at most half.
  intakeQueueBytes: 256 * MIB,
  idempotencyBytes: 128 * MIB, // about 260,000 requests
  minUploadRate: 1024,
};
