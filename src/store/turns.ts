// Work that must not overlap, one after another in the order it came.

export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Resolves when everything that has a turn is done. */
  async done(): Promise<void> {
    await this.#last;
  }
}
