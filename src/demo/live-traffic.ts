// The present of the synthetic platform: what happened since the last time is sent, again and again, until it is stopped.
import type { Clock } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import type { Random } from './random.ts';
import type { Shipped } from './shipped-record.ts';
import { shipStretch } from './traffic.ts';

export interface LiveTrafficDependencies {
  /** Sends records of one kind. What fails is gone: it is only a demo. */
  send(kind: Shipped['kind'], records: readonly Shipped['record'][]): Promise<void>;
  /** When the history ends. */
  readonly startMs: number;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly random: Random;
}

const EVERY_MS = 1000;

export class LiveTraffic {
  readonly #parts: LiveTrafficDependencies;
  #sentUpToMs: number;
  #cancel: (() => void) | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(parts: LiveTrafficDependencies) {
    this.#parts = parts;
    this.#sentUpToMs = parts.startMs;
  }

  start(): void {
    this.#cancel = this.#parts.timer.after(EVERY_MS, () => {
      this.#sending = this.#sendOnce().finally(() => {
        if (this.#cancel !== undefined) this.start();
      });
    });
  }

  /** Resolves when nothing is on its way any more. */
  async stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    await this.#sending;
  }

  async #sendOnce(): Promise<void> {
    const { clock, random, send, startMs } = this.#parts;
    const toMs = Number(clock() / 1000n);
    const shipped = shipStretch({ fromMs: this.#sentUpToMs, toMs, startMs, scale: 1 }, random);
    this.#sentUpToMs = toMs;
    for (const kind of ['edge', 'function_edge'] as const) {
      const records = shipped.filter(each => each.kind === kind).map(({ record }) => record);
      if (records.length > 0) await send(kind, records).catch(() => {});
    }
  }
}
