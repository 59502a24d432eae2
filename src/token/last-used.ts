// When each token of the tokens file was last used: kept in memory, and written to another file once a minute, best effort. The time
// that is written is that of the write. No request triggers a write: a timer does.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';
import { writeFileDurably } from '../system/files.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { Token } from './token.ts';
import { readTokenFile } from './token-file.ts';

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
  readonly #tokensFile: string;
  readonly #clock: Clock;
  /** The hashes of the tokens that were used since the last write. */
  #used = new Set<string>();
  readonly #writeJob: RepeatingJob;

  constructor(tokensFile: string, clock: Clock, timer: Timer) {
    this.#tokensFile = tokensFile;
    this.#clock = clock;
    this.#writeJob = every(timer, WRITE_EVERY_MS, () => this.#write());
  }

  record({ sha256 }: Token): void {
    this.#used.add(sha256);
  }

  async close(): Promise<void> {
    await this.#writeJob.stop();
    await this.#write();
  }

  /**
   * Omits revoked tokens, and keys from the environment, which `token list` does not show. Waits while the tokens file is missing:
   * its tokens stay active.
   */
  async #write(): Promise<void> {
    if (this.#used.size === 0 || !existsSync(this.#tokensFile)) return;
    const used = this.#used;
    this.#used = new Set();
    try {
      const now = formatTimestamp(this.#clock());
      const before = readLastUsed(this.#tokensFile);
      const times: Record<string, string | undefined> = {};
      for (const { sha256 } of readTokenFile(this.#tokensFile))
        times[sha256] = used.has(sha256) ? now : before[sha256];
      await writeFileDurably(fileFor(this.#tokensFile), `${JSON.stringify(times, undefined, 2)}\n`);
    } catch {
      for (const sha256 of used) this.#used.add(sha256); // such as on a full disk; the next write retries
    }
  }
}
