// Lets readers through together, and a swap of the relations they read only while none of them is inside.

export class ReadWriteLock {
  #inside = 0;
  #swapping: Promise<void> | undefined;
  #onEmpty = () => {};

  /** For as long as `work` runs, nothing is swapped. */
  async read<T>(work: () => Promise<T>): Promise<T> {
    while (this.#swapping !== undefined) await this.#swapping;
    this.#inside++;
    try {
      return await work();
    } finally {
      this.#inside--;
      if (this.#inside === 0) this.#onEmpty();
    }
  }

  /** Runs `work` alone. Swaps must follow one another. */
  async write<T>(work: () => Promise<T>): Promise<T> {
    let open = () => {};
    this.#swapping = new Promise(resolve => {
      open = resolve;
    });
    try {
      if (this.#inside > 0)
        await new Promise<void>(resolve => {
          this.#onEmpty = resolve;
        });
      return await work();
    } finally {
      this.#onEmpty = () => {};
      this.#swapping = undefined;
      open();
    }
  }
}
