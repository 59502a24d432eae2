// What is under way, to be ended together. One signal for all would be simpler, but every signal that is combined with one
// that lives long leaves a little behind in Node 20, and there is one for each query.

export class InFlight {
  readonly #all = new Map<AbortController, Promise<unknown>>();
  #reason: unknown;

  get isClosed(): boolean {
    return this.#reason !== undefined;
  }

  /** Runs work that gets a signal of its own. */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    if (this.isClosed) controller.abort(this.#reason);
    const running = work(controller.signal);
    this.#all.set(controller, running);
    try {
      return await running;
    } finally {
      this.#all.delete(controller);
    }
  }

  /** Breaks off what is under way now. */
  abortAll(reason: Error): void {
    for (const controller of this.#all.keys()) controller.abort(reason);
  }

  /** And nothing begins any more. Resolves when all of it has ended. */
  async close(reason: Error): Promise<void> {
    this.#reason ??= reason;
    this.abortAll(reason);
    await Promise.allSettled(this.#all.values());
  }
}
