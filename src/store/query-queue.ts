// Schedules queries for both stores: a fixed number runs at once, the others wait in a queue, and one deadline covers waiting
// and running. Foreground queries run before background ones. A group of queries gets at most three quarters of the slots and of
// the queue, so that slow queries of one endpoint leave room for others. A query is cancelled through the signal that it gets.
import { DendroError, queuedTooLong } from '../domain/errors.ts';
import type { QueryOptions } from './store.ts';

export interface QueryLimits {
  /** Queries that run at once. */
  readonly queryConcurrency: number;
  /** Foreground queries that can wait; further ones are rejected. Background queries have no limit. */
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

interface Waiter {
  readonly options: QueryOptions;
  readonly start: () => void;
}

export class QueryQueue {
  readonly #limits: QueryLimits;
  readonly #waiters: Waiter[] = [];
  /** One for each query that waits or runs. */
  readonly #controllers = new Set<AbortController>();
  #busy = 0;
  /** Slots in use, for groups that use any. */
  readonly #busyInGroup = new Map<string, number>();
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
    const timeoutMs = this.#limits.queryTimeoutSeconds * 1000;
    let startedAt: number | undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const abortWithCaller = () => controller.abort(options.signal?.reason);
    const abortAtDeadline = () =>
      controller.abort(
        startedAt === undefined ? queuedTooLong() : timedOut(this.#limits.queryTimeoutSeconds),
      );
    this.#controllers.add(controller);
    options.signal?.addEventListener('abort', abortWithCaller);
    const deadline = setTimeout(abortAtDeadline, timeoutMs).unref();
    try {
      await this.#acquireSlot(options, signal);
      startedAt = performance.now();
      options.onStart?.();
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
      if (startedAt !== undefined) this.#releaseSlot(options);
    }
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  get running(): number {
    return this.#busy;
  }

  /** Cancels every query. Resolves when no slot is in use. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const controller of this.#controllers) controller.abort(storeClosed());
    if (this.#busy > 0)
      await new Promise<void>(resolve => {
        this.#onIdle = resolve;
      });
  }

  #acquireSlot(options: QueryOptions, signal: AbortSignal): Promise<void> {
    if (!isBackground(options)) this.#rejectIfFull(options);
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        options,
        start() {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave);
      this.#waiters.push(waiter);
      if (options.priority?.background) options.priority.onForeground = () => this.#dispatch();
      this.#dispatch();
    });
  }

  #rejectIfFull({ group }: QueryOptions): void {
    const { queryConcurrency, queryQueueLength } = this.#limits;
    const waiting = this.#waiters.filter(waiter => !isBackground(waiter.options));
    // A new query enters `#waiters` even if a slot is free, so free slots count too.
    const isFull = waiting.length >= queryConcurrency - this.#busy + queryQueueLength;
    if (isFull) throw new DendroError('unavailable', 'too many queries are waiting; retry in a moment');
    if (group === undefined) return;
    const waitingInGroup = waiting.filter(waiter => waiter.options.group === group).length;
    const freeInGroup = shareOf(queryConcurrency) - (this.#busyInGroup.get(group) ?? 0);
    if (waitingInGroup >= freeInGroup + shareOf(queryQueueLength))
      throw new DendroError(
        'unavailable',
        'too many queries of this endpoint are waiting; retry in a moment',
      );
  }

  #releaseSlot({ group }: QueryOptions): void {
    this.#occupy(group, -1);
    if (this.#isClosed && this.#busy === 0) this.#onIdle();
    this.#dispatch();
  }

  /**
   * Starts waiting queries, foreground queries first, in the order of arrival. Skips a query whose group has used up its share of
   * the slots. A background query leaves one slot free, unless there is only one slot.
   */
  #dispatch(): void {
    const { queryConcurrency } = this.#limits;
    while (this.#busy < queryConcurrency) {
      const mayRunBackground = queryConcurrency - this.#busy > 1 || queryConcurrency === 1;
      const startable = this.#waiters.filter(waiter => this.#hasShareLeft(waiter.options));
      const next =
        startable.find(waiter => !isBackground(waiter.options)) ??
        (mayRunBackground ? startable[0] : undefined);
      if (next === undefined) return;
      this.#waiters.splice(this.#waiters.indexOf(next), 1);
      this.#occupy(next.options.group, 1);
      next.start();
    }
  }

  #hasShareLeft({ group }: QueryOptions): boolean {
    const busy = group === undefined ? 0 : (this.#busyInGroup.get(group) ?? 0);
    return busy < shareOf(this.#limits.queryConcurrency);
  }

  #occupy(group: string | undefined, change: 1 | -1): void {
    this.#busy += change;
    if (group === undefined) return;
    const busy = (this.#busyInGroup.get(group) ?? 0) + change;
    if (busy > 0) this.#busyInGroup.set(group, busy);
    else this.#busyInGroup.delete(group);
  }
}

/** What one group can use of a limit: three quarters, but at least 1 if the limit is not 0. */
function shareOf(limit: number): number {
  return Math.max(Math.min(1, limit), Math.floor((limit * 3) / 4));
}

function isBackground({ priority }: QueryOptions): boolean {
  return priority?.background === true;
}

export function storeClosed(): DendroError {
  return new DendroError('unavailable', 'the store is closed');
}

export function timedOut(seconds: number): DendroError {
  return new DendroError(
    'query_timeout',
    `the query exceeded its limit of ${seconds} s and was cancelled; ask for a shorter time range`,
  );
}
