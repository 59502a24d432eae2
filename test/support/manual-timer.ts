// A timer that advances only when a test says so. Due callbacks run in order, with pending promises resolved in between.
import type { Timer } from '../../src/system/timer.ts';

export class ManualTimer implements Timer {
  #now = 0;
  #due: { at: number; callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const item = { at: this.#now + ms, callback };
    this.#due.push(item);
    return () => {
      this.#due = this.#due.filter(other => other !== item);
    };
  }

  /** Whether a callback is to be called later. */
  get isWaiting(): boolean {
    return this.#due.length > 0;
  }

  /** Lets time pass at once, as if the process had been stopped: what was due meanwhile runs with the next `advance`. */
  skip(ms: number): void {
    this.#now += ms;
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await flushPromises();
    for (;;) {
      const next = this.#due.filter(item => item.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#due.splice(this.#due.indexOf(next), 1);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await flushPromises();
    }
    this.#now = end;
  }
}

/** Runs everything that does not wait for time. */
export async function flushPromises(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve));
}
