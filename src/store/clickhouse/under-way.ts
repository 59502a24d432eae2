// What is under way, to be ended together. One signal for all would be simpler, but every signal that is combined with one
// that lives long leaves a little behind in Node 20, and there is one for each query.

export class UnderWay {
  readonly #all = new Set<AbortController>();
  #reason: unknown;

  get isEnded(): boolean {
    return this.#reason !== undefined;
  }

  /** Runs work that gets a signal of its own. */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    if (this.isEnded) controller.abort(this.#reason);
    this.#all.add(controller);
    try {
      return await work(controller.signal);
    } finally {
      this.#all.delete(controller);
    }
  }

  /** Breaks off what is under way now. */
  breakOff(reason: Error): void {
    for (const controller of this.#all) controller.abort(reason);
  }

  /** And nothing begins any more. */
  end(reason: Error): void {
    this.#reason ??= reason;
    this.breakOff(reason);
  }
}
