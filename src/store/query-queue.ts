// As many queries at once as are allowed, and a bounded queue behind them. Callers go before what nobody waits for.
import { DendroError } from '../domain/errors.ts';
import type { QueryOptions } from './store.ts';

interface Waiter {
  readonly call: QueryOptions;
  readonly go: () => void;
}

export class QueryQueue {
  readonly #places: number;
  readonly #length: number;
  readonly #waiters: Waiter[] = [];
  #running = 0;

  constructor(places: number, length: number) {
    this.#places = places;
    this.#length = length;
  }

  /** Resolves when it is the call's turn; `leave` is to be called when it is done. `cancel` ends the waiting. */
  async enter(call: QueryOptions, cancel: AbortSignal): Promise<() => void> {
    const free = Math.max(0, this.#places - this.#running);
    const callers = this.#waiters.filter(waiter => !isBackground(waiter.call)).length;
    if (!isBackground(call) && callers >= free + this.#length)
      throw new DendroError('unavailable', 'too many queries are waiting; try again in a moment');
    await new Promise<void>((resolve, reject) => {
      const giveUp = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(cancel.reason);
      };
      const waiter = {
        call,
        go: () => {
          cancel.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      cancel.addEventListener('abort', giveUp, { once: true });
      this.#waiters.push(waiter);
      this.#dispatch();
    });
    return () => {
      this.#running--;
      this.#dispatch();
    };
  }

  /** What runs in the background never takes the last place from callers. */
  #dispatch(): void {
    while (this.#running < this.#places) {
      const caller = this.#waiters.findIndex(waiter => !isBackground(waiter.call));
      const mayRunBackground = this.#places - this.#running > 1 || this.#places === 1;
      const index = caller !== -1 ? caller : mayRunBackground ? 0 : -1;
      const [next] = index === -1 ? [] : this.#waiters.splice(index, 1);
      if (next === undefined) return;
      this.#running++;
      next.go();
    }
  }
}

function isBackground(call: QueryOptions): boolean {
  return call.priority?.background === true;
}
