// Limits how many requests run at a time. The others wait, in the order of their arrival.

/** Maximum of requests that run at a time. */
export const MAX_RUNNING = 32;
/** Maximum of requests that wait. Limits the memory for them. */
export const MAX_WAITING = 256;

export class RequestQueue {
  #running = 0;
  /** Each function starts one waiting request. */
  readonly #waiting = new Set<() => void>();

  /** Whether no further request can run or wait. */
  get isFull(): boolean {
    return this.#waiting.size >= MAX_WAITING;
  }

  /** Throws the reason of the signal if it aborts before the request has started. */
  async run<T>(request: () => Promise<T> | T, signal: AbortSignal): Promise<T> {
    if (this.#running < MAX_RUNNING) this.#running++;
    else await this.#waitForSlot(signal);
    try {
      signal.throwIfAborted();
      return await request();
    } finally {
      this.#startNext();
    }
  }

  /** Waits until another request has ended and this one takes its place. */
  #waitForSlot(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(resolve);
      const leave = () => {
        if (this.#waiting.delete(resolve)) reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  #startNext(): void {
    const [start] = this.#waiting;
    if (start === undefined) {
      this.#running--;
      return;
    }
    this.#waiting.delete(start);
    start();
  }
}
