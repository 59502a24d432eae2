// A read-write lock for asynchronous work: readers run together, a writer runs alone. A waiting writer has priority: it holds
// back new readers and waits for those that already run.

export class ReadWriteLock {
  #readers = 0;
  #writing: Promise<void> | undefined;
  #onLastReaderLeft = () => {};

  /** No writer runs while `work` does. */
  async read<T>(work: () => Promise<T>): Promise<T> {
    while (this.#writing !== undefined) await this.#writing;
    this.#readers++;
    try {
      return await work();
    } finally {
      this.#readers--;
      if (this.#readers === 0) this.#onLastReaderLeft();
    }
  }

  /** Runs `work` alone. Callers must not start a second write before the first has finished. */
  async write<T>(work: () => Promise<T>): Promise<T> {
    let admitReaders = () => {};
    this.#writing = new Promise(resolve => {
      admitReaders = resolve;
    });
    try {
      if (this.#readers > 0)
        await new Promise<void>(resolve => {
          this.#onLastReaderLeft = resolve;
        });
      return await work();
    } finally {
      this.#onLastReaderLeft = () => {};
      this.#writing = undefined;
      admitReaders();
    }
  }
}
