// Schedules queries for both stores: a fixed number runs at once, the others wait in a queue, and one deadline covers waiting
// and running. Callers take turns, so that many queries of one caller do not delay those of another. Foreground queries run before
// background ones. A query is cancelled through the signal that it gets.
import { DendroError, QueuedTooLongError, timedOut } from '../domain/errors.ts';
import type { QueryOptions } from './store.ts';

export interface QueryLimits {
  /** Queries that run at once. */
  readonly queryConcurrency: number;
  /** Foreground queries of one caller that can wait; further ones are rejected. Background queries have no limit. */
  readonly queryQueueLength: number;
  /** Covers waiting and running. */
  readonly queryTimeoutSeconds: number;
}

export interface TimedResult<T> {
  readonly result: T;
  readonly queuedMs: number;
  readonly executedMs: number;
}

export interface RunningQuery {
  /** Aborts at the deadline, when the caller's signal aborts and when the queue closes. Its reason is the error to report. */
  readonly signal: AbortSignal;
  /** Whole seconds until the deadline, at least 1. */
  readonly secondsLeft: number;
}

interface QueuedQuery {
  readonly options: QueryOptions;
  readonly start: () => void;
}

/** For queries of commands and of the server itself. */
const NO_TOKEN: ReadonlySet<string> = new Set(['']);

export class QueryQueue {
  readonly #limits: QueryLimits;
  /** In the order of turns: callers whose last query ended earlier first, then in the order of arrival. */
  #waiting: QueuedQuery[] = [];
  readonly #running = new Set<QueuedQuery>();
  /** One for each query that waits or runs. */
  readonly #controllers = new Set<AbortController>();
  #isClosed = false;
  #onIdle = () => {};

  constructor(limits: QueryLimits) {
    this.#limits = limits;
  }

  /** Runs `work` in a slot. Throws as Store.query does. */
  async run<T>(
    work: (query: RunningQuery) => Promise<T>,
    options: QueryOptions = {},
  ): Promise<TimedResult<T>> {
    options.signal?.throwIfAborted();
    if (this.#isClosed) throw storeClosed();
    const requestedAt = performance.now();
    const { queryTimeoutSeconds } = this.#limits;
    const leftMs = (options.endsAt ?? Number.POSITIVE_INFINITY) - requestedAt;
    const timeoutMs = Math.min(queryTimeoutSeconds * 1000, leftMs);
    if (timeoutMs <= 0) throw timedOut(queryTimeoutSeconds);
    let startedAt: number | undefined;
    let running: QueuedQuery | undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const abortWithCaller = () => controller.abort(options.signal?.reason);
    const abortAtDeadline = () => {
      const queuedMs = (startedAt ?? performance.now()) - requestedAt;
      const isQueuedTooLong = queuedMs > 0.9 * timeoutMs;
      controller.abort(isQueuedTooLong ? new QueuedTooLongError() : timedOut(queryTimeoutSeconds));
    };
    this.#controllers.add(controller);
    options.signal?.addEventListener('abort', abortWithCaller);
    const deadline = setTimeout(abortAtDeadline, timeoutMs).unref();
    try {
      running = await this.#acquireSlot(options, signal);
      startedAt = performance.now();
      const queuedMs = startedAt - requestedAt;
      const secondsLeft = Math.max(1, Math.ceil((timeoutMs - queuedMs) / 1000));
      const result = await work({ signal, secondsLeft });
      return { result, queuedMs, executedMs: performance.now() - startedAt };
    } catch (error) {
      signal.throwIfAborted(); // a cancelled query throws the abort reason, not the store's error
      throw error;
    } finally {
      clearTimeout(deadline);
      options.signal?.removeEventListener('abort', abortWithCaller);
      this.#controllers.delete(controller);
      if (running !== undefined) this.#releaseSlot(running);
    }
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Cancels every query. Resolves when no slot is in use. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const controller of this.#controllers) controller.abort(storeClosed());
    if (this.#running.size > 0)
      await new Promise<void>(resolve => {
        this.#onIdle = resolve;
      });
  }

  #acquireSlot(options: QueryOptions, signal: AbortSignal): Promise<QueuedQuery> {
    this.#rejectIfFull(callersOf(options));
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(query), 1);
        reject(signal.reason);
      };
      const query: QueuedQuery = {
        options,
        start() {
          signal.removeEventListener('abort', leave);
          resolve(query);
        },
      };
      signal.addEventListener('abort', leave);
      this.#waiting.push(query);
      if (options.callers !== undefined) options.callers.onJoin = () => this.#dispatch();
      this.#dispatch();
    });
  }

  #rejectIfFull(callers: ReadonlySet<string>): void {
    const { queryConcurrency, queryQueueLength } = this.#limits;
    // A new query enters `#waiting` even if a slot is free, so free slots count too.
    const limit = queryConcurrency - this.#running.size + queryQueueLength;
    const waiting = countByCaller(this.#waiting);
    if (callers.size > 0 && leastOf(waiting, callers) >= limit)
      throw new DendroError('unavailable', 'too many queries of this token are waiting; retry in a moment');
  }

  #releaseSlot(query: QueuedQuery): void {
    this.#running.delete(query);
    if (this.#isClosed && this.#running.size === 0) this.#onIdle();
    // The callers have had their turn: what only they wait for moves to the end.
    const hadTurn = countByCaller([query]);
    const isLast = ({ options }: QueuedQuery) => leastOf(hadTurn, callersOf(options)) > 0;
    const last = this.#waiting.filter(isLast);
    this.#waiting = this.#waiting.filter(other => !isLast(other)).concat(last);
    this.#dispatch();
  }

  #dispatch(): void {
    while (this.#running.size < this.#limits.queryConcurrency) {
      const next = this.#findNext();
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#running.add(next);
      next.start();
    }
  }

  /**
   * The first foreground query of the callers with the fewest running queries. Without one, a background query, which leaves one
   * slot free, unless there is only one slot.
   */
  #findNext(): QueuedQuery | undefined {
    const { queryConcurrency } = this.#limits;
    const isExpensiveRunning = [...this.#running].some(({ options }) => options.isExpensive);
    const startable = this.#waiting.filter(({ options }) => !(options.isExpensive && isExpensiveRunning));
    const running = countByCaller(this.#running);
    let next: QueuedQuery | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const query of startable) {
      const count = leastOf(running, callersOf(query.options)); // of a background query: infinity
      if (count < fewest) [next, fewest] = [query, count];
    }
    const mayRunBackground = queryConcurrency - this.#running.size > 1 || queryConcurrency === 1;
    return next ?? (mayRunBackground ? startable[0] : undefined);
  }
}

/** Empty for a background query. */
function callersOf({ callers }: QueryOptions): ReadonlySet<string> {
  return callers?.ids ?? NO_TOKEN;
}

function countByCaller(queries: Iterable<QueuedQuery>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { options } of queries)
    for (const id of callersOf(options)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** The smallest count of the callers; infinity if there is no caller. */
function leastOf(counts: ReadonlyMap<string, number>, callers: ReadonlySet<string>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const id of callers) least = Math.min(least, counts.get(id) ?? 0);
  return least;
}

export function storeClosed(): DendroError {
  return new DendroError('unavailable', 'the store is closed');
}
