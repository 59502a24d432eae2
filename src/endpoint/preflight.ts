// Preflight: checks that the store has its tables and permissions, and that it accepts the SQL of every endpoint. If a remote
// store is unreachable or too slow when the program starts, the check is retried in the background until it passes.
import { DendroError, OperatorError } from '../domain/errors.ts';
import type { Observe } from '../observe/event.ts';
import type { Store } from '../store/store.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import { type Catalog, checkCatalog } from './catalog.ts';

const RETRY_INTERVAL_MS = 2_000;

/**
 * Throws an OperatorError for a problem that the operator has to fix. If the store is unreachable or too slow, throws the same
 * errors as Store.query.
 */
export async function runPreflight(catalog: Catalog, store: Store): Promise<void> {
  const missing = await store.preflight();
  if (missing !== undefined) throw new OperatorError(missing);
  await checkCatalog(catalog, store);
}

export class Preflight {
  readonly #check: () => Promise<void>;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #passed = false;
  #lastProblem = '';
  #retries: RepeatingJob | undefined;

  constructor(catalog: Catalog, store: Store, timer: Timer, observe: Observe) {
    this.#check = () => runPreflight(catalog, store);
    this.#timer = timer;
    this.#observe = observe;
  }

  get passed(): boolean {
    return this.#passed;
  }

  /** Throws for a problem that the operator has to fix. If the store is unreachable or too slow, retries in the background. */
  async start(): Promise<void> {
    try {
      await this.#check();
      this.#passed = true;
    } catch (error) {
      if (!isTransient(error)) throw error;
      this.#report(error);
      this.#retries = every(this.#timer, RETRY_INTERVAL_MS, () => this.#retry());
    }
  }

  async close(): Promise<void> {
    await this.#retries?.stop();
  }

  async #retry(): Promise<void> {
    try {
      await this.#check();
      this.#passed = true;
      this.#observe({ type: 'store_available' });
      void this.#retries?.stop();
    } catch (error) {
      this.#report(error);
    }
  }

  /** Reports a problem once, not at every retry. */
  #report(error: unknown): void {
    const { message } = error as Error;
    if (message !== this.#lastProblem) this.#observe({ type: 'store_unavailable', error });
    this.#lastProblem = message;
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof DendroError && (error.code === 'unavailable' || error.code === 'query_timeout');
}
