// Work that must not overlap, one after another in the order it came.

export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Resolves when everything that has a turn is done. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
