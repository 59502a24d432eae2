// A mutex for asynchronous work: one piece of work at a time, first come, first served.

export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when all earlier work has finished. A failure does not stop the work that waits after it. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Resolves when all work queued so far has finished. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
