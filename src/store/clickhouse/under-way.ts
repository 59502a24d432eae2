// What is under way, to be ended together. One signal for all would be simpler, but every signal that is combined with one
// that lives long leaves a little behind in Node 20, and there is one for each query.

export class UnderWay {
  readonly #all = new Map<AbortController, Promise<unknown>>();
  #reason: unknown;

  get isEnded(): boolean {
    return this.#reason !== undefined;
  }

  /** Runs work that gets a signal of its own. */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    if (this.isEnded) controller.abort(this.#reason);
    const running = work(controller.signal);
    this.#all.set(controller, running);
    try {
      return await running;
    } finally {
      this.#all.delete(controller);
    }
  }

  /** Breaks off what is under way now. */
  breakOff(reason: Error): void {
    for (const controller of this.#all.keys()) controller.abort(reason);
  }

  /** And nothing begins any more. Resolves when all of it has ended. */
  async end(reason: Error): Promise<void> {
    this.#reason ??= reason;
    this.breakOff(reason);
    await Promise.allSettled(this.#all.values());
  }
}
