// Schedules queries for both stores: a fixed number runs at once, a bounded queue waits, and one deadline covers waiting
// and running. Foreground queries run before background ones. A query is cancelled through the signal that it receives.
import { DendroError } from '../domain/errors.ts';
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
  /** Slots in use, including those that clean up. */
  #busy = 0;
  #cleaningUp = 0;
  #isClosed = false;
  #onIdle = () => {};

  constructor(limits: QueryLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `work` in a slot. Then runs `cleanUp`, even if `work` failed. The slot is released after `cleanUp`; the result is
   * returned before. Throws as Store.query does.
   */
  async run<T>(
    work: (query: RunningQuery) => Promise<T>,
    options: QueryOptions = {},
    cleanUp: () => Promise<void> = async () => {},
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
      if (startedAt !== undefined) void this.#releaseSlot(cleanUp);
    }
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
    const { queryConcurrency, queryQueueLength } = this.#limits;
    // A slot that is cleaning up will be free soon, so it counts as free here.
    const capacity = queryConcurrency - this.#busy + this.#cleaningUp + queryQueueLength;
    const waitingForeground = this.#waiters.filter(waiter => !isBackground(waiter.options)).length;
    if (!isBackground(options) && waitingForeground >= capacity)
      throw new DendroError('unavailable', 'too many queries are waiting; retry in a moment');
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
      this.#dispatch();
    });
  }

  async #releaseSlot(cleanUp: () => Promise<void>): Promise<void> {
    this.#cleaningUp++;
    try {
      await cleanUp();
    } finally {
      this.#cleaningUp--;
      this.#busy--;
      if (this.#isClosed && this.#busy === 0) this.#onIdle();
      this.#dispatch();
    }
  }

  /** Foreground queries first, in the order of arrival. A background query leaves one slot free, unless there is only one slot. */
  #dispatch(): void {
    const { queryConcurrency } = this.#limits;
    while (this.#busy < queryConcurrency) {
      const foreground = this.#waiters.findIndex(waiter => !isBackground(waiter.options));
      const mayRunBackground = queryConcurrency - this.#busy > 1 || queryConcurrency === 1;
      const index = foreground !== -1 ? foreground : mayRunBackground ? 0 : -1;
      const [next] = index === -1 ? [] : this.#waiters.splice(index, 1);
      if (next === undefined) return;
      this.#busy++;
      next.start();
    }
  }
}

function isBackground({ priority }: QueryOptions): boolean {
  return priority?.background === true;
}

export function storeClosed(): DendroError {
  return new DendroError('unavailable', 'the store is closed');
}

function queuedTooLong(): DendroError {
  return new DendroError('unavailable', 'the query waited too long in the queue; retry in a moment');
}

export function timedOut(seconds: number): DendroError {
  return new DendroError(
    'query_timeout',
    `the query exceeded its limit of ${seconds} s and was cancelled; ask for a shorter time range`,
  );
}
