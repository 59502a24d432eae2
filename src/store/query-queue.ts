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

/** Slots that are in use. */
interface Usage {
  /** Includes those that clean up. */
  busy: number;
  cleaningUp: number;
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
  readonly #total: Usage = { busy: 0, cleaningUp: 0 };
  /** Only groups that use a slot. */
  readonly #groups = new Map<string, Usage>();
  #isClosed = false;
  #onIdle = () => {};

  constructor(limits: QueryLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `work` in a slot, then `cleanUp`, even if `work` failed. Returns the result of `work` without waiting for `cleanUp`. The
   * slot is released after `cleanUp`. Throws as Store.query does.
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
      if (startedAt !== undefined) void this.#releaseSlot(options, cleanUp);
    }
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  get running(): number {
    return this.#total.busy;
  }

  /** Cancels every query. Resolves when no slot is in use. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const controller of this.#controllers) controller.abort(storeClosed());
    if (this.#total.busy > 0)
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
    const isFull = waiting.length >= capacity(queryConcurrency, queryQueueLength, this.#total);
    if (isFull) throw new DendroError('unavailable', 'too many queries are waiting; retry in a moment');
    if (group === undefined) return;
    const waitingInGroup = waiting.filter(waiter => waiter.options.group === group).length;
    const used = this.#groups.get(group) ?? { busy: 0, cleaningUp: 0 };
    if (waitingInGroup >= capacity(shareOf(queryConcurrency), shareOf(queryQueueLength), used))
      throw new DendroError(
        'unavailable',
        'too many queries of this endpoint are waiting; retry in a moment',
      );
  }

  async #releaseSlot({ group }: QueryOptions, cleanUp: () => Promise<void>): Promise<void> {
    const used = group === undefined ? undefined : this.#groups.get(group);
    const usages = used === undefined ? [this.#total] : [this.#total, used];
    for (const usage of usages) usage.cleaningUp++;
    try {
      await cleanUp();
    } finally {
      for (const usage of usages) {
        usage.cleaningUp--;
        usage.busy--;
      }
      if (group !== undefined && used?.busy === 0) this.#groups.delete(group);
      if (this.#isClosed && this.#total.busy === 0) this.#onIdle();
      this.#dispatch();
    }
  }

  /**
   * Starts waiting queries, foreground queries first, in the order of arrival. Skips a query whose group has used up its share of
   * the slots. A background query leaves one slot free, unless there is only one slot.
   */
  #dispatch(): void {
    const { queryConcurrency } = this.#limits;
    while (this.#total.busy < queryConcurrency) {
      const mayRunBackground = queryConcurrency - this.#total.busy > 1 || queryConcurrency === 1;
      const startable = this.#waiters.filter(waiter => this.#hasShareLeft(waiter.options));
      const next =
        startable.find(waiter => !isBackground(waiter.options)) ??
        (mayRunBackground ? startable[0] : undefined);
      if (next === undefined) return;
      this.#waiters.splice(this.#waiters.indexOf(next), 1);
      this.#occupySlot(next.options);
      next.start();
    }
  }

  #hasShareLeft({ group }: QueryOptions): boolean {
    const busy = group === undefined ? 0 : (this.#groups.get(group)?.busy ?? 0);
    return busy < shareOf(this.#limits.queryConcurrency);
  }

  #occupySlot({ group }: QueryOptions): void {
    this.#total.busy++;
    if (group === undefined) return;
    const used = this.#groups.get(group) ?? { busy: 0, cleaningUp: 0 };
    this.#groups.set(group, used);
    used.busy++;
  }
}

/**
 * How many queries `#waiters` can have: a new query enters it even if a slot is free, so free slots count too. A slot that is
 * cleaning up will be free soon, so it counts as free.
 */
function capacity(slots: number, queueLength: number, { busy, cleaningUp }: Usage): number {
  return slots - busy + cleaningUp + queueLength;
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
