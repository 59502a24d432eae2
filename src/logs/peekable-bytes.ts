// A byte stream with a peek operation, because a pipe cannot be read a second time after its format was detected. Does not
// close its source.

export class PeekableBytes {
  readonly #source: AsyncIterator<Buffer>;
  #buffered: Buffer[] = [];
  #ended = false;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Buffers bytes until `isEnough(head)` or the end of the stream, and returns them. The stream still yields them. */
  async peek(isEnough: (head: Buffer) => boolean): Promise<Buffer> {
    let head = Buffer.concat(this.#buffered);
    while (!this.#ended && !isEnough(head)) {
      // Doubling the length avoids copying the whole head once per chunk.
      await this.#fill(head.length * 2);
      head = Buffer.concat(this.#buffered);
    }
    this.#buffered = head.length === 0 ? [] : [head];
    return head;
  }

  /** Drops the first bytes, which must have been peeked. */
  skip(byteCount: number): void {
    this.#buffered = [Buffer.concat(this.#buffered).subarray(byteCount)];
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    yield* this.#buffered.splice(0);
    while (!this.#ended) {
      const next = await this.#source.next();
      if (next.done === true) return;
      yield next.value;
    }
  }

  /** Reads from the source until at least `byteCount` bytes are buffered. */
  async #fill(byteCount: number): Promise<void> {
    let bufferedBytes = this.#buffered.reduce((sum, chunk) => sum + chunk.length, 0);
    do {
      const next = await this.#source.next();
      this.#ended = next.done === true;
      if (next.done === true) return;
      this.#buffered.push(next.value);
      bufferedBytes += next.value.length;
    } while (bufferedBytes < byteCount);
  }
}
