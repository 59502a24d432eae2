// A stream of bytes whose beginning can be looked at before it is read: a pipe cannot be opened a second time.
// Whoever opened the source closes it.

export class PeekableBytes {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer[] = [];
  #ended = false;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Reads on until `isEnough` says so of the beginning, or all is read; gives the beginning. */
  async peek(isEnough: (head: Buffer) => boolean): Promise<Buffer> {
    let head = Buffer.concat(this.#held);
    while (!this.#ended && !isEnough(head)) {
      // Twice as much each time, so that a long first line is not copied once for every chunk of it.
      await this.#hold(head.length * 2);
      head = Buffer.concat(this.#held);
    }
    this.#held = [head];
    return head;
  }

  /** Leaves out the first bytes of what was peeked at. */
  skip(byteCount: number): void {
    this.#held = [Buffer.concat(this.#held).subarray(byteCount)];
  }

  /** All bytes, those that were peeked at first. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    yield* this.#held.splice(0);
    while (!this.#ended) {
      const next = await this.#source.next();
      if (next.done === true) return;
      yield next.value;
    }
  }

  async #hold(byteCount: number): Promise<void> {
    let heldBytes = this.#held.reduce((sum, chunk) => sum + chunk.length, 0);
    do {
      const next = await this.#source.next();
      this.#ended = next.done === true;
      if (next.done === true) return;
      this.#held.push(next.value);
      heldBytes += next.value.length;
    } while (heldBytes < byteCount);
  }
}
