// One load that any number of callers wait for. When the last of them leaves, the load is cancelled; a load that was
// started in the background has no one to leave, and goes on.

export interface LoadPriority {
  /** Nobody waits for it: callers' loads go first. */
  readonly background: boolean;
}

/** `urgency` changes when a caller begins to wait for what was started in the background. */
export type Load<V> = (signal: AbortSignal, urgency: LoadPriority) => Promise<V>;

export class Flight<V> {
  readonly startedAt: number;
  readonly result: Promise<V>;
  readonly #controller = new AbortController();
  readonly #priority: { background: boolean };
  readonly #endsWithCallers: boolean;
  #waiters = 0;

  constructor(load: Load<V>, background: boolean, startedAt: number) {
    this.startedAt = startedAt;
    this.#endsWithCallers = !background;
    this.#priority = { background };
    this.result = load(this.#controller.signal, this.#priority);
    this.result.catch(() => {}); // those who wait see the failure; where nobody waits, nobody has to
  }

  /** No caller has ever waited for it. */
  get background(): boolean {
    return this.#priority.background;
  }

  /** Every caller has gone: what is left of it is no good to the next one. */
  get cancelled(): boolean {
    return this.#controller.signal.aborted;
  }

  async join(signal: AbortSignal | undefined): Promise<V> {
    signal?.throwIfAborted();
    this.#priority.background = false;
    this.#waiters++;
    try {
      return await (signal === undefined ? this.result : untilAborted(this.result, signal));
    } finally {
      this.#waiters--;
      if (signal?.aborted && this.#waiters === 0 && this.#endsWithCallers) this.cancel(signal.reason);
    }
  }

  cancel(reason: unknown): void {
    this.#controller.abort(reason);
  }
}

function untilAborted<V>(result: Promise<V>, signal: AbortSignal): Promise<V> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
