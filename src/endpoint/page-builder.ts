// Collects the rows of a page from several queries, and creates the cursor of the next page. Each query searches one slice of the
// time range (query-slices.ts).
import type { BoundValues, Cell, QueryResult, SavedQuery } from '../store/store.ts';
import { MICROS_PER_SECOND } from '../system/clock.ts';
import { encodeCursor, type Position, positionAfter, type RowKey } from './cursor.ts';
import type { EndpointDefinition } from './definition.ts';
import { describePagedQuery } from './page-position.ts';

/**
 * The cursor after the first `rowCount` rows; undefined: there are no more. A cursor contains the id of a record. With
 * `redacted`, an id that contains an IP address is left out.
 */
export type CursorAfter = (rowCount: number, redacted: boolean) => string | undefined;

export interface Page {
  readonly result: QueryResult;
  /** The time limit ended the search before the page was full. */
  readonly isTimeUp: boolean;
  readonly cursorAfter: CursorAfter;
}

/** Why the page ends, and how the search continues after it. */
export interface Continuation {
  readonly isTimeUp: boolean;
  /** Where the next page starts to search; undefined: the whole range was searched. */
  readonly next: Position | undefined;
  /** The size of the first slice that the next page searches. */
  readonly sliceMicros: bigint;
}

/** The query of the page, and where the page starts. */
export interface PageContext {
  readonly definition: EndpointDefinition;
  readonly query: SavedQuery;
  readonly values: BoundValues;
  /** Undefined: the page begins at the newest record. */
  readonly start: Position | undefined;
}

export class PageBuilder {
  readonly #context: PageContext;
  readonly #rows: (readonly Cell[])[] = [];
  #truncated = false;
  #exceedsMaxBytes = false;
  #characters = 0;
  #queuedMs = 0;
  #executedMs = 0;
  /** Of the slice that lacks the most parts. */
  #missingParts = 0;

  constructor(context: PageContext) {
    this.#context = context;
  }

  /** How many more rows the page can have. */
  get rowsLeft(): number {
    return this.#context.query.maxRows - this.#rows.length;
  }

  get isFull(): boolean {
    return this.#hasMore || this.rowsLeft === 0;
  }

  /** The row limit or the byte limit cut the rows of the last query. */
  get #hasMore(): boolean {
    return this.#truncated || this.#exceedsMaxBytes;
  }

  /** The timestamp of the last row, if the last query had more rows than were added. */
  get cutAt(): bigint | undefined {
    return this.#hasMore ? this.#listKeys().at(-1)?.timestampMicros : undefined;
  }

  /** What is left of `maxBytes` for the next query. Counts characters, as QueryOptions.maxBytes does. */
  bytesLeft(maxBytes: number | undefined): number | undefined {
    return maxBytes === undefined ? undefined : Math.max(0, maxBytes - this.#characters);
  }

  add({ rows, truncated, exceedsMaxBytes, queuedMs, executedMs, missingParts = 0 }: QueryResult): void {
    for (const row of rows) {
      this.#rows.push(row);
      for (const cell of row) if (typeof cell === 'string') this.#characters += cell.length;
    }
    this.#truncated = truncated;
    this.#exceedsMaxBytes = exceedsMaxBytes;
    this.#queuedMs += queuedMs;
    this.#executedMs += executedMs;
    this.#missingParts = Math.max(this.#missingParts, missingParts);
  }

  finish({ isTimeUp, next, sliceMicros }: Continuation): Page {
    const { definition, values, start } = this.#context;
    const keys = this.#listKeys();
    const query = describePagedQuery(definition, values);
    const sliceSeconds = Number(sliceMicros / MICROS_PER_SECOND);
    return {
      result: {
        rows: this.#rows,
        truncated: this.#truncated,
        exceedsMaxBytes: this.#exceedsMaxBytes,
        queuedMs: this.#queuedMs,
        executedMs: this.#executedMs,
        missingParts: this.#missingParts,
      },
      isTimeUp,
      cursorAfter: (rowCount, redacted) => {
        const isCut = this.#hasMore || rowCount < keys.length;
        const position = isCut ? positionAfter(keys.slice(0, rowCount), start, redacted) : next;
        return position && encodeCursor({ ...position, sliceSeconds }, query);
      },
    };
  }

  #listKeys(): RowKey[] {
    const { columns } = this.#context.query;
    const indexOf = (column: string) => columns.findIndex(({ name }) => name === column);
    const [timestamp, id] = [indexOf('timestamp'), indexOf('id')];
    return this.#rows.map(row => ({ timestampMicros: BigInt(row[timestamp] ?? 0), id: String(row[id]) }));
  }
}
