// Whether a store can serve: that it has what it needs, and takes the SQL of every endpoint. A store that lies elsewhere may
// be away when the program starts; then it is asked again until it has answered.
import { DendroError, OperatorError } from '../domain/errors.ts';
import type { Observe } from '../observe/event.ts';
import type { Store } from '../store/store.ts';
import type { Timer } from '../system/timer.ts';
import { type Catalog, checkCatalog } from './catalog.ts';

const AGAIN_MS = 2_000;

/** Throws an OperatorError for what has to be mended, `unavailable` where the store is out of reach. */
export async function runPreflight(catalog: Catalog, store: Store): Promise<void> {
  const missing = await store.preflight?.();
  if (missing !== undefined) throw new OperatorError(missing);
  await checkCatalog(catalog, store);
}

export class Preflight {
  readonly #check: () => Promise<void>;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #passed = false;
  #lastFault = '';
  #cancel = () => {};
  #running: Promise<void> = Promise.resolve();

  constructor(catalog: Catalog, store: Store, timer: Timer, observe: Observe) {
    this.#check = () => runPreflight(catalog, store);
    this.#timer = timer;
    this.#observe = observe;
  }

  get passed(): boolean {
    return this.#passed;
  }

  /** Throws what has to be mended before a start. A store that is out of reach is asked again in the background. */
  async start(): Promise<void> {
    try {
      await this.#check();
      this.#passed = true;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      this.#report(error);
      this.#later();
    }
  }

  async close(): Promise<void> {
    this.#cancel();
    await this.#running;
  }

  #later(): void {
    this.#cancel = this.#timer.after(AGAIN_MS, () => {
      this.#running = this.#again();
    });
  }

  async #again(): Promise<void> {
    try {
      await this.#check();
      this.#passed = true;
      this.#observe({ type: 'store_available' });
    } catch (error) {
      this.#report(error);
      this.#later();
    }
  }

  /** Once for each fault, not every time it is met. */
  #report(error: unknown): void {
    const { message } = error as Error;
    if (message !== this.#lastFault) this.#observe({ type: 'store_unavailable', error });
    this.#lastFault = message;
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof DendroError && error.code === 'unavailable';
}
