// Keeps rejected records with their reasons (logs/quarantine-line.ts), in a file that is bounded: when it is full it takes
// the place of the one before, and a new one is begun.
import { appendFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Observe } from '../observe/event.ts';

const MAX_FILE_BYTES = 32 * 1024 * 1024;

export class Quarantine {
  readonly #file: string;
  readonly #older: string;
  readonly #maxBytes: number;
  readonly #observe: Observe;
  #bytes: number | undefined;
  /** Of lines that wait to be written. */
  #waitingLength = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(dataDirectory: string, observe: Observe, maxBytes = MAX_FILE_BYTES) {
    this.#file = join(dataDirectory, 'quarantine.ndjson');
    this.#older = join(dataDirectory, 'quarantine.older.ndjson');
    this.#maxBytes = maxBytes;
    this.#observe = observe;
  }

  /** A disk that refuses the lines is told of; it keeps no sender waiting. */
  keep(lines: string): void {
    if (lines === '') return;
    if (this.#waitingLength > this.#maxBytes) {
      this.#observe({ type: 'quarantine_failed', error: new Error('more are rejected than the disk takes') });
      return;
    }
    this.#waitingLength += lines.length;
    this.#last = this.#last
      .then(() => this.#write(Buffer.from(lines)))
      .catch(error => this.#observe({ type: 'quarantine_failed', error }))
      .then(() => {
        this.#waitingLength -= lines.length;
      });
  }

  /** Resolves when all of them are written. */
  done(): Promise<void> {
    return this.#last;
  }

  async #write(lines: Buffer): Promise<void> {
    this.#bytes ??= await sizeOf(this.#file);
    if (this.#bytes > 0 && this.#bytes + lines.length > this.#maxBytes) {
      await rename(this.#file, this.#older);
      this.#bytes = 0;
    }
    await appendFile(this.#file, lines, { mode: 0o600 });
    this.#bytes += lines.length;
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch {
    return 0;
  }
}
