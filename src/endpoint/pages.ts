// The pages of an endpoint with a parameter of type cursor: collects the rows of a page, and creates the cursor, which says where the
// next page starts. A cursor belongs to one query: it contains a checksum of its position, of the endpoint and of all parameters but
// the cursor. It is not signed, because it grants nothing: a query applies its conditions on every page. But a forged id could be
// compared with the ids of records, so a cursor of a token with redaction has no id.
import { createHash } from 'node:crypto';
import type { BoundValues, Cell, QueryResult, SavedQuery } from '../store/store.ts';
import { MICROS_PER_SECOND } from '../system/clock.ts';
import type { EndpointDefinition } from './definition.ts';
import { cursorValueNames } from './parameter-definition.ts';
import { createQueryKey } from './query-key.ts';

/**
 * The next page starts with the records of this timestamp whose id is `id` or later, without the first `skip` of them. Older
 * records follow.
 */
export interface Position {
  readonly timestampMicros: bigint;
  /**
   * Usually the id of the last returned record, cut to 256 bytes. `positionAfter` says when it is the id of an earlier position.
   * Empty for a token with redaction, or if the next page starts at the boundary of a slice (query-slices.ts). `skip` then counts
   * from the first record of the timestamp.
   */
  readonly id: string;
  /** How many records with this timestamp and with `id` or a later id were already returned. */
  readonly skip: number;
}

export interface Cursor extends Position {
  /** The size of the first slice that the next page searches (query-slices.ts). */
  readonly sliceSeconds: number;
}

/** Ids have no other limit than the size of a record, and a cursor is sent in a header and in a URL. */
const MAX_ID_BYTES = 256;

/** More than a search can skip, and than a slice can have seconds. */
const MAX_COUNT = 0xffff_ffff;

const CHECKSUM_CHARACTERS = 11;

/** Returns undefined if the text is not a cursor of this query. `query`: its key (query-key.ts). */
export function decodeCursor(text: string, query: string): Cursor | undefined {
  const decoded = Buffer.from(text, 'base64url').toString();
  const position = decoded.slice(CHECKSUM_CHARACTERS);
  if (toText(position, query) !== text) return undefined;
  return parseCursor(position);
}

/** Checks everything: anybody can compute the checksum. */
function parseCursor(json: string): Cursor | undefined {
  const [timestampMicros, id, skip, sliceSeconds] = parseArray(json);
  const isCount = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_COUNT;
  if (typeof timestampMicros !== 'string' || !/^-?\d{1,18}$/.test(timestampMicros)) return undefined;
  if (typeof id !== 'string' || Buffer.byteLength(id) > MAX_ID_BYTES) return undefined;
  if (!isCount(skip) || !isCount(sliceSeconds)) return undefined;
  return { timestampMicros: BigInt(timestampMicros), id, skip, sliceSeconds };
}

/** Empty: the text is not an array. */
function parseArray(json: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(json);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function encodeCursor({ timestampMicros, id, skip, sliceSeconds }: Cursor, query: string): string {
  return toText(JSON.stringify([String(timestampMicros), id, skip, sliceSeconds]), query);
}

function toText(position: string, query: string): string {
  const hash = createHash('sha256').update(`${query}\0${position}`).digest('base64url');
  return Buffer.from(hash.slice(0, CHECKSUM_CHARACTERS) + position).toString('base64url');
}

/** The key of a row, by which the rows are ordered: newest first, then by id. */
export interface RowKey {
  readonly timestampMicros: bigint;
  readonly id: string;
}

/**
 * The position after `rows`, the first rows of a page or all of them. `start` is where the page starts; undefined: at the newest
 * record. With `redacted`, the position has no id: it counts all records of the timestamp instead.
 */
export function positionAfter(
  rows: readonly RowKey[],
  start: Position | undefined,
  redacted: boolean,
): Position | undefined {
  const last = rows.at(-1);
  if (last === undefined) return start;
  const { timestampMicros } = last;
  const id = redacted ? '' : truncateId(last.id);
  const lastUncounted = rows.findLastIndex(
    row => row.timestampMicros !== timestampMicros || !row.id.startsWith(id),
  );
  const skip = rows.length - 1 - lastUncounted;
  // If all rows of the page have this timestamp and an id that starts with `id`, and the page started within this timestamp,
  // earlier pages may have returned such records too. So the new position keeps the id of `start` and adds to its count.
  if (lastUncounted === -1 && start?.timestampMicros === timestampMicros)
    return { timestampMicros, id: start.id, skip: start.skip + skip };
  return { timestampMicros, id, skip };
}

/** Cuts an id to at most MAX_ID_BYTES, between two characters. */
function truncateId(id: string): string {
  const bytes = Buffer.from(id);
  if (bytes.length <= MAX_ID_BYTES) return id;
  let end = MAX_ID_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/**
 * Returns the SQL parameters for where the page starts. `position` is undefined for the first page. It is also undefined for the
 * second and later slices of every page (query-slices.ts). The query then skips no records.
 */
export function bindPosition(definition: EndpointDefinition, position: Cursor | undefined): BoundValues {
  const names = namesOf(definition);
  return {
    [names.timestamp]: { type: 'timestamp', value: position?.timestampMicros ?? null },
    [names.id]: { type: 'text', value: position?.id ?? null },
    [names.skip]: { type: 'integer', value: position?.skip ?? 0 },
    [names.slice]: { type: 'integer', value: position?.sliceSeconds ?? null },
  };
}

/** The inverse of `bindPosition`: returns the position from the SQL parameters. */
export function readPosition(definition: EndpointDefinition, values: BoundValues): Cursor | undefined {
  const names = namesOf(definition);
  const timestamp = values[names.timestamp];
  if (timestamp?.type !== 'timestamp' || timestamp.value === null) return undefined;
  return {
    timestampMicros: timestamp.value,
    id: String(values[names.id]?.value ?? ''),
    skip: Number(values[names.skip]?.value ?? 0),
    sliceSeconds: Number(values[names.slice]?.value ?? 0),
  };
}

function namesOf({ parameters }: EndpointDefinition): ReturnType<typeof cursorValueNames> {
  return cursorValueNames(Object.keys(parameters).find(name => parameters[name]?.type === 'cursor') ?? '');
}

/** The cursor after the first `rowCount` rows; undefined: there are no more. With `redacted`, it contains no id of a record. */
export type CursorAfter = (rowCount: number, redacted: boolean) => string | undefined;

export interface Page {
  readonly result: QueryResult;
  /** The time limit ended the search before the page was full. */
  readonly isTimeUp: boolean;
  readonly cursorAfter: CursorAfter;
}

export class PageBuilder {
  readonly #definition: EndpointDefinition;
  readonly #query: SavedQuery;
  readonly #values: BoundValues;
  readonly #rows: (readonly Cell[])[] = [];
  #truncated = false;
  #exceedsMaxBytes = false;
  #characters = 0;
  #queuedMs = 0;
  #executedMs = 0;
  /** Of the slice that lacks the most parts. */
  #missingParts = 0;

  constructor(definition: EndpointDefinition, query: SavedQuery, values: BoundValues) {
    this.#definition = definition;
    this.#query = query;
    this.#values = values;
  }

  /** How many more rows the page can have. */
  get rowsLeft(): number {
    return this.#query.maxRows - this.#rows.length;
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

  /** `next`: where the next page starts to search, with a slice of this size; undefined: the whole range was searched. */
  finish(isTimeUp: boolean, next: Position | undefined, sliceMicros: bigint): Page {
    const start = readPosition(this.#definition, this.#values);
    const keys = this.#listKeys();
    const query = createQueryKey(this.#definition, this.#values);
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
    const { columns } = this.#query;
    const indexOf = (column: string) => columns.findIndex(({ name }) => name === column);
    const [timestamp, id] = [indexOf('timestamp'), indexOf('id')];
    return this.#rows.map(row => ({ timestampMicros: BigInt(row[timestamp] ?? 0), id: String(row[id]) }));
  }
}
