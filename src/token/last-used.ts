// When each token was last used: remembered in memory, written about once a minute, best effort. Authentication itself
// never writes.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';
import { writePrivateFile } from '../system/files.ts';
import type { Timer } from '../system/timer.ts';
import type { Token } from './token.ts';

const WRITE_EVERY_MS = 60_000;

/** By the hash of a token: a name may be given again to another one. */
const lastUsed = v.record(v.string(), v.string());
export type LastUsed = Readonly<v.InferOutput<typeof lastUsed>>;

function fileFor(tokensFile: string): string {
  return join(dirname(tokensFile), 'tokens-last-used.json');
}

/** What is known; nothing where the file is missing or broken. */
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
  readonly #timer: Timer;
  readonly #times: Map<string, bigint | string>;
  #changed = false;
  #cancelWrite = () => {};

  constructor(tokensFile: string, clock: Clock, timer: Timer) {
    this.#file = fileFor(tokensFile);
    this.#clock = clock;
    this.#timer = timer;
    this.#times = new Map(Object.entries(readLastUsed(tokensFile)));
    this.#writeLater();
  }

  record({ sha256 }: Token): void {
    this.#times.set(sha256, this.#clock());
    this.#changed = true;
  }

  close(): void {
    this.#cancelWrite();
    this.#write();
  }

  #writeLater(): void {
    this.#cancelWrite = this.#timer.after(WRITE_EVERY_MS, () => {
      this.#write();
      this.#writeLater();
    });
  }

  #write(): void {
    if (!this.#changed) return;
    this.#changed = false;
    const times = [...this.#times].map(([sha256, at]) => [
      sha256,
      typeof at === 'bigint' ? formatTimestamp(at) : at,
    ]);
    try {
      writePrivateFile(this.#file, `${JSON.stringify(Object.fromEntries(times), undefined, 2)}\n`);
    } catch {
      this.#changed = true; // a full disk, say: the next minute may have more luck
    }
  }
}
