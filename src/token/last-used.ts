// The time at which each token was last used: kept in memory and written to a file once a minute, best effort. No request
// triggers a write: a timer does.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';
import { writeFileDurably } from '../system/files.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { Token } from './token.ts';

const WRITE_EVERY_MS = 60_000;

/** The times of the last use, by the hash of the secret, because a new token may reuse a name. */
const lastUsed = v.record(v.string(), v.string());
export type LastUsed = Readonly<v.InferOutput<typeof lastUsed>>;

function fileFor(tokensFile: string): string {
  return join(dirname(tokensFile), 'tokens-last-used.json');
}

/** Empty if the file is missing or invalid. */
export function readLastUsed(tokensFile: string): LastUsed {
  try {
    return v.parse(lastUsed, JSON.parse(readFileSync(fileFor(tokensFile), 'utf8')));
  } catch {
    return {};
  }
}

export class LastUsedTimes {
  readonly #file: string;
  readonly #clock: Clock;
  /** Times from the file as text, new ones in Unix microseconds. */
  readonly #times: Map<string, bigint | string>;
  readonly #writeJob: RepeatingJob;
  #hasChanged = false;

  constructor(tokensFile: string, clock: Clock, timer: Timer) {
    this.#file = fileFor(tokensFile);
    this.#clock = clock;
    this.#times = new Map(Object.entries(readLastUsed(tokensFile)));
    this.#writeJob = every(timer, WRITE_EVERY_MS, () => this.#write());
  }

  record({ sha256 }: Token): void {
    this.#times.set(sha256, this.#clock());
    this.#hasChanged = true;
  }

  async close(): Promise<void> {
    await this.#writeJob.stop();
    await this.#write();
  }

  async #write(): Promise<void> {
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    const times = [...this.#times].map(([sha256, at]) => [
      sha256,
      typeof at === 'bigint' ? formatTimestamp(at) : at,
    ]);
    try {
      await writeFileDurably(this.#file, `${JSON.stringify(Object.fromEntries(times), undefined, 2)}\n`);
    } catch {
      this.#hasChanged = true; // such as on a full disk; the next write retries
    }
  }
}
