// The result of a query, as the views of the console use it.

export type Row = Readonly<Record<string, unknown>>;

export interface QueryResult {
  readonly rows: readonly Row[];
  /** When the query ran, by the server's clock, in Unix milliseconds. */
  readonly ranAt: number;
  /** When the query ran, by the browser's clock, in Unix milliseconds. */
  readonly ranAtLocal: number;
  /** The time of the newest record of the log kind, in Unix milliseconds; undefined if there is no record. */
  readonly dataThrough: number | undefined;
  /** Why rows are missing: any of `row-limit`, `byte-limit`, `time-limit` and `retention`. */
  readonly clipped: readonly string[];
  /** The parameter `cursor` of the next rows; undefined if there are none. */
  readonly nextCursor: string | undefined;
}
