// Single flight: one load that any number of callers wait for. When the last caller leaves, the load is cancelled. A load
// that was started in the background is never cancelled by callers.

export interface LoadPriority {
  /** No caller is waiting: loads of callers run first. */
  readonly background: boolean;
}

/** `priority` is live: it changes when a caller starts to wait for a background load. */
export type Load<V> = (signal: AbortSignal, priority: LoadPriority) => Promise<V>;

export class Flight<V> {
  readonly startedAt: number;
  readonly result: Promise<V>;
  readonly #controller = new AbortController();
  readonly #priority: { background: boolean };
  readonly #cancelsWithLastCaller: boolean;
  #waiters = 0;

  constructor(load: Load<V>, background: boolean, startedAt: number) {
    this.startedAt = startedAt;
    this.#cancelsWithLastCaller = !background;
    this.#priority = { background };
    this.result = load(this.#controller.signal, this.#priority);
    this.result.catch(() => {}); // callers see the failure through join(); without callers it is not unhandled
  }

  /** No caller has ever joined. */
  get background(): boolean {
    return this.#priority.background;
  }

  /** A new caller cannot join a cancelled load and has to start its own. */
  get cancelled(): boolean {
    return this.#controller.signal.aborted;
  }

  async join(signal: AbortSignal | undefined): Promise<V> {
    signal?.throwIfAborted();
    this.#priority.background = false;
    this.#waiters++;
    try {
      return await (signal === undefined ? this.result : rejectOnAbort(this.result, signal));
    } finally {
      this.#waiters--;
      if (signal?.aborted && this.#waiters === 0 && this.#cancelsWithLastCaller) this.cancel(signal.reason);
    }
  }

  cancel(reason: unknown): void {
    this.#controller.abort(reason);
  }
}

function rejectOnAbort<V>(result: Promise<V>, signal: AbortSignal): Promise<V> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
