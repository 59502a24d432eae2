// Something in a data directory that is not as it was written.

export interface Damage {
  /** Relative to the data directory. */
  readonly file: string;
  /** Where in the file, such as "bytes 120 to 180". Empty: the whole file. */
  readonly place: string;
  readonly problem: string;
}

export function formatDamage({ file, place, problem }: Damage): string {
  return `${file}${place === '' ? '' : `, ${place}`}: ${problem}`;
}

/** `end` is exclusive. */
export function byteRange(start: number, end: number): string {
  return `bytes ${start} to ${end - 1}`;
}
