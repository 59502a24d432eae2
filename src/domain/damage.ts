// Something in a data directory that is not as it was written.

export interface Damage {
  /** Relative to the data directory. */
  readonly file: string;
  /** Where in the file, such as "bytes 120 to 180". Empty: the whole file. */
  readonly place: string;
  readonly problem: string;
}

/**
 * What the store did with records that differ from those that were written to its file, or that cannot be read.
 * - rewritten: it replaced them with the records of the spool, and has read these back.
 * - retrying: that failed or is not finished. The spool keeps its records, and the store retries.
 * - not in the spool: the spool no longer has all of these records. They stay damaged, and the spool may delete those that it still has.
 * - copy dropped: a compaction, a vacuum, an erasure or an eviction found the difference in its copy. The old parts stay.
 */
export type VerificationOutcome = 'rewritten' | 'retrying' | 'not in the spool' | 'copy dropped';

export function formatDamage({ file, place, problem }: Damage): string {
  return `${file}${place === '' ? '' : `, ${place}`}: ${problem}`;
}

/** `end` is exclusive. */
export function byteRange(start: number, end: number): string {
  return `bytes ${start} to ${end - 1}`;
}
