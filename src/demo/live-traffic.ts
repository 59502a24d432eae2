// The live traffic of the synthetic platform: every second, sends the records of the time since the last send.
import type { Clock } from '../system/clock.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { DemoRecord } from './demo-record.ts';
import type { Random } from './random.ts';
import { createTraffic } from './traffic.ts';

export interface LiveTrafficDependencies {
  /** Sends records of one kind. If it fails, the records are dropped. */
  send(kind: DemoRecord['kind'], records: readonly DemoRecord['record'][]): Promise<void>;
  /** The start of the demo, in Unix milliseconds. The history ends there, and the live traffic continues it. */
  readonly demoStartMs: number;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly random: Random;
}

const INTERVAL_MS = 1000;

export class LiveTraffic {
  readonly #dependencies: LiveTrafficDependencies;
  #sentUpToMs: number;
  #job: RepeatingJob | undefined;

  constructor(dependencies: LiveTrafficDependencies) {
    this.#dependencies = dependencies;
    this.#sentUpToMs = dependencies.demoStartMs;
  }

  start(): void {
    this.#job = every(this.#dependencies.timer, INTERVAL_MS, () => this.#sendOnce());
  }

  /** Resolves when the last request has finished. */
  async stop(): Promise<void> {
    await this.#job?.stop();
  }

  async #sendOnce(): Promise<void> {
    const { clock, random, send, demoStartMs } = this.#dependencies;
    const toMs = Number(clock() / 1000n);
    const all = createTraffic({ fromMs: this.#sentUpToMs, toMs, demoStartMs, scale: 1 }, random);
    this.#sentUpToMs = toMs;
    for (const kind of ['edge', 'function_edge'] as const) {
      const records = all.filter(record => record.kind === kind).map(({ record }) => record);
      if (records.length > 0) await send(kind, records).catch(() => {});
    }
  }
}
