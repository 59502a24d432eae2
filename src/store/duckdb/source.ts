// A table that queries read: a memtable or a part. It counts the queries that use it, so that its table is dropped, or its file
// deleted, only after the last of them.

export class Source {
  /** The qualified name of the table. */
  readonly table: string;
  #users = 0;
  #onUnused = () => {};

  constructor(table: string) {
    this.table = table;
  }

  acquire(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users === 0) this.#onUnused();
  }

  /** Resolves when no query uses the table. The caller must make sure that no further query acquires it. */
  async unused(): Promise<void> {
    if (this.#users > 0)
      await new Promise<void>(resolve => {
        this.#onUnused = resolve;
      });
  }
}
