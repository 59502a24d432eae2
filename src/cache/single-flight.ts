// Single flight: one load that any number of waiters share. When the last waiter aborts, the load is cancelled. A load
// that was started in the background continues without waiters.

/** Who waits for a load. Empty: nobody, so other loads run first. */
export interface Callers {
  /** Grows when another caller joins the load. */
  readonly ids: ReadonlySet<string>;
  /** Set by the load; called when `ids` has grown. */
  onJoin?: (() => void) | undefined;
}

export type Load<V> = (signal: AbortSignal, callers: Callers) => Promise<V>;

export class Flight<V> {
  readonly startedAt: number;
  readonly result: Promise<V>;
  readonly #controller = new AbortController();
  readonly #ids = new Set<string>();
  readonly #callers: Callers = { ids: this.#ids };
  readonly #cancelsWithLastWaiter: boolean;
  #waiters = 0;

  /** `caller` will join; undefined: the load is started in the background. */
  constructor(load: Load<V>, caller: string | undefined, startedAt: number) {
    this.startedAt = startedAt;
    this.#cancelsWithLastWaiter = caller !== undefined;
    if (caller !== undefined) this.#ids.add(caller);
    this.result = load(this.#controller.signal, this.#callers);
    this.result.catch(() => {}); // prevents an unhandled rejection when nobody joined
  }

  /** The load was started in the background and nobody has joined it. */
  get background(): boolean {
    return this.#ids.size === 0;
  }

  /** A cancelled load cannot be joined: start a new one. */
  get cancelled(): boolean {
    return this.#controller.signal.aborted;
  }

  /** The signal must not be aborted yet. */
  async join(caller: string, signal: AbortSignal | undefined): Promise<V> {
    this.#waiters++;
    if (!this.#ids.has(caller)) {
      this.#ids.add(caller);
      this.#callers.onJoin?.();
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
