// Runs the query of an endpoint with pages: searches its time range in slices, from the newest to the oldest, until the page is
// full or the time is up. So the first page of a search with many matches reads few records, and a search that takes too long
// still returns what it found, with a cursor to continue.
import { DendroError, QueuedTooLongError } from '../domain/errors.ts';
import type { BoundValues, QueryOptions, QueryResult, SavedQuery, Store } from '../store/store.ts';
import { MICROS_PER_SECOND } from '../system/clock.ts';
import type { EndpointDefinition } from './definition.ts';
import { bindPosition, type Page, PageBuilder, type Position, readPosition } from './pages.ts';

export interface SlicedQuery {
  readonly store: Pick<Store, 'query'>;
  readonly definition: EndpointDefinition;
  readonly query: SavedQuery;
  readonly values: BoundValues;
  /**
   * The timestamp of the newest record at or before now in the logs that the query reads. Undefined if every record is later than
   * now, or there are no records.
   */
  readonly newest: bigint | undefined;
}

/** Later than every record: the end of the year 9999. */
const END_OF_TIME = 253_402_300_799_999_999n;

/**
 * The size of the first slice without a cursor. Smaller slices are used only after one that took too long: below this size, the
 * fixed cost of a query dominates.
 */
const USUAL_MIN_MICROS = 3600n * MICROS_PER_SECOND;
/** A cursor contains the size of a slice in whole seconds. */
const MIN_SLICE_MICROS = MICROS_PER_SECOND;
/** About 100 years, more than any range. A cursor has 32 bits for the size of a slice, in seconds. */
const MAX_SLICE_MICROS = 3_200_000_000n * MICROS_PER_SECOND;

/**
 * If the first slice is not searched in time, returns an empty page, whose cursor continues with a smaller slice. But if the
 * first slice already has the smallest size, throws `query_timeout`, and if it spent nearly all of the time in the queue,
 * `unavailable`. Also throws as Store.query does.
 */
export async function querySlices(
  { store, definition, query, values, newest }: SlicedQuery,
  options: QueryOptions,
): Promise<Page> {
  const { endsAt = Number.POSITIVE_INFINITY } = options;
  const rangeStart = toMicros(values['range_start']?.value) ?? 0n;
  const start = readPosition(definition, values);
  const page = new PageBuilder(definition, query, values);
  const sizes = new SliceSizes(start === undefined ? undefined : BigInt(start.sliceSeconds));
  let next = start ?? startAt(toMicros(values[definition.range?.end ?? '']?.value) ?? END_OF_TIME);
  let bound = values;
  while (next.timestampMicros > rangeStart) {
    const end = next.timestampMicros;
    // `sizes.micros` is measured back from `top`: from `newest` if that is before `end`, because there are no records between
    // `newest` and now. The slice still ends at `end`, so that it includes records later than now. Without `newest`, one slice
    // covers the whole range.
    const top = newest !== undefined && newest < end ? newest : end;
    const sliceStart = newest === undefined ? rangeStart : max(rangeStart, top - sizes.micros);
    const slice: BoundValues = {
      slice_start: { type: 'timestamp', value: sliceStart },
      slice_end: { type: 'timestamp', value: end },
    };
    const result = await attempt(() =>
      store.query(
        { ...query, maxRows: page.rowsLeft },
        { ...bound, ...slice },
        {
          ...options,
          maxBytes: page.bytesLeft(options.maxBytes),
          range: { start: sliceStart, end },
        },
      ),
    );
    if (result === 'queued' || result === 'too slow') {
      const isFirst = bound === values; // no slice was searched yet
      if (isFirst && result === 'queued') throw new QueuedTooLongError();
      const hasShrunk = result === 'too slow' && sizes.shrink(top - sliceStart);
      if (isFirst && !hasShrunk) throw tooSlow();
      return page.finish(true, next, sizes.micros);
    }
    page.add(result);
    next = startAt(sliceStart);
    bound = { ...values, ...bindPosition(definition, undefined) }; // the cursor's id and skip apply to the first slice only
    sizes.adapt(result.executedMs, page.cutAt === undefined ? undefined : top - page.cutAt);
    const hasNext = sliceStart > rangeStart;
    // The next slice would probably not finish if it took as long as this one.
    const isTimeUp = !page.isFull && hasNext && endsAt - performance.now() < result.executedMs;
    if (page.isFull || isTimeUp) return page.finish(isTimeUp, hasNext ? next : undefined, sizes.micros);
  }
  return page.finish(false, undefined, sizes.micros);
}

/** The position that continues the search with the records of this timestamp and then with older ones. */
function startAt(timestampMicros: bigint): Position {
  return { timestampMicros, id: '', skip: 0 };
}

/**
 * Slices grow while they are fast, so that an empty range takes few queries, and shrink if a slice takes seconds. A cursor
 * contains the slice size, so that the next page does not begin with small slices again.
 */
class SliceSizes {
  #micros: bigint;
  /** The fixed cost of a query, estimated by the fastest one so far. Smaller slices do not reduce it. */
  #fastestMs = Number.POSITIVE_INFINITY;

  constructor(seconds: bigint | undefined) {
    this.#micros = seconds === undefined ? USUAL_MIN_MICROS : limitSize(seconds * MICROS_PER_SECOND);
  }

  get micros(): bigint {
    return this.#micros;
  }

  /** Call it after a slice that did not finish. Returns false if the slice was already as small as a slice can be. */
  shrink(sliceMicros: bigint): boolean {
    const tried = min(this.#micros, sliceMicros);
    this.#micros = limitSize(tried / 16n);
    return tried > MIN_SLICE_MICROS;
  }

  /**
   * Call it after a slice that finished. `pageMicros`: the time span, from the newest end of the slice, whose rows filled the
   * page. Undefined if the slice did not fill the page.
   */
  adapt(executedMs: number, pageMicros: bigint | undefined): void {
    this.#fastestMs = Math.min(this.#fastestMs, executedMs);
    const excessMs = executedMs - this.#fastestMs;
    if (pageMicros !== undefined) this.#micros = min(this.#micros, max(USUAL_MIN_MICROS, 2n * pageMicros));
    else if (executedMs < 100) this.#micros = limitSize(this.#micros * (executedMs < 25 ? 64n : 16n));
    else if (excessMs < 400) this.#micros = limitSize(this.#micros * 4n);
    else this.#micros = limitSize(excessMs < 2000 ? this.#micros * 2n : this.#micros / 2n);
  }
}

/** Returns why the query did not finish within its time, if it did not. */
async function attempt(run: () => Promise<QueryResult>): Promise<QueryResult | 'too slow' | 'queued'> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof QueuedTooLongError) return 'queued';
    if (error instanceof DendroError && error.code === 'query_timeout') return 'too slow';
    throw error;
  }
}

function limitSize(micros: bigint): bigint {
  return min(MAX_SLICE_MICROS, max(MIN_SLICE_MICROS, micros));
}

function toMicros(value: unknown): bigint | undefined {
  return typeof value === 'bigint' ? value : undefined;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function tooSlow(): DendroError {
  return new DendroError(
    'query_timeout',
    'not even one second of the time range could be searched within the time limit; use fewer search terms, or ask the operator for a higher --query-timeout',
  );
}
