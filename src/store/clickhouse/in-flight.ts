// Operations in flight that are aborted together. Each has an AbortController of its own: in Node 20 every
// AbortSignal.any() with one long-lived signal leaks a little memory, and every query would call it.

export class InFlight {
  readonly #running = new Map<AbortController, Promise<unknown>>();
  #closeReason: Error | undefined;

  /** Runs `work` with a signal of its own. After `close` the signal is already aborted. */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    if (this.#closeReason !== undefined) controller.abort(this.#closeReason);
    const running = work(controller.signal);
    this.#running.set(controller, running);
    try {
      return await running;
    } finally {
      this.#running.delete(controller);
    }
  }

  /** Aborts the operations that run now; later ones are not affected. */
  abortAll(reason: Error): void {
    for (const controller of this.#running.keys()) controller.abort(reason);
  }

  /** Aborts running and later operations. Resolves when the running ones have ended. */
  async close(reason: Error): Promise<void> {
    this.#closeReason ??= reason;
    this.abortAll(reason);
    await Promise.allSettled(this.#running.values());
  }
}
