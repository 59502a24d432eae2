// Single flight: one load that any number of waiters share. When the last waiter aborts, the load is cancelled. A load
// that was started in the background continues without waiters.

export interface LoadPriority {
  /** Nobody waits for this load, so other loads run first. Becomes false when a waiter joins the load. */
  readonly background: boolean;
  /** Set by the load; called when `background` has become false. */
  onForeground?: (() => void) | undefined;
}

export type Load<V> = (signal: AbortSignal, priority: LoadPriority) => Promise<V>;

export class Flight<V> {
  readonly startedAt: number;
  readonly result: Promise<V>;
  readonly #controller = new AbortController();
  readonly #priority: LoadPriority & { background: boolean };
  readonly #cancelsWithLastWaiter: boolean;
  #waiters = 0;

  constructor(load: Load<V>, background: boolean, startedAt: number) {
    this.startedAt = startedAt;
    this.#cancelsWithLastWaiter = !background;
    this.#priority = { background };
    this.result = load(this.#controller.signal, this.#priority);
    this.result.catch(() => {}); // prevents an unhandled rejection when nobody joined
  }

  /** The load was started in the background and nobody has joined it. */
  get background(): boolean {
    return this.#priority.background;
  }

  /** A cancelled load cannot be joined: start a new one. */
  get cancelled(): boolean {
    return this.#controller.signal.aborted;
  }

  /** The signal must not be aborted yet. */
  async join(signal: AbortSignal | undefined): Promise<V> {
    this.#waiters++;
    if (this.#priority.background) {
      this.#priority.background = false;
      this.#priority.onForeground?.();
    }
    try {
      return await (signal === undefined ? this.result : rejectOnAbort(this.result, signal));
    } finally {
      this.#waiters--;
      if (signal?.aborted && this.#waiters === 0 && this.#cancelsWithLastWaiter)
        this.#controller.abort(signal.reason);
    }
  }
}

function rejectOnAbort<V>(result: Promise<V>, signal: AbortSignal): Promise<V> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
