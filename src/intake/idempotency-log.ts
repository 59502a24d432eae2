// What is left of a segment that was removed: the requests in it that may still be sent again, a small file each.
import { open, readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../system/files.ts';
import { type CompletedRequest, hasExpired } from './idempotency-index.ts';

export class IdempotencyLog {
  readonly #folder: string;
  /** When the youngest request of each file came. */
  readonly #youngest = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** All that are there. A line that a crash left half-written belongs to a segment that is still there. */
  async read(): Promise<CompletedRequest[]> {
    const names = (await readdir(this.#folder)).filter(name => name.endsWith('.requests')).sort();
    const all: CompletedRequest[] = [];
    for (const name of names) {
      const path = join(this.#folder, name);
      const requests = (await readFile(path, 'utf8')).split('\n').flatMap(parseRequest);
      all.push(...requests);
      this.#note(path, requests);
    }
    return all;
  }

  /** Durable when this resolves. */
  async write(segment: number, requests: readonly CompletedRequest[], nowMicros: number): Promise<void> {
    const young = requests.filter(request => !hasExpired(request, nowMicros));
    if (young.length === 0) return;
    const path = join(this.#folder, `${String(segment).padStart(12, '0')}.requests`);
    const file = await open(path, 'w', 0o600);
    try {
      await file.writeFile(young.map(request => `${JSON.stringify(request)}\n`).join(''));
      await file.sync();
    } finally {
      await file.close();
    }
    await syncDirectory(this.#folder);
    this.#note(path, young);
  }

  async deleteExpired(nowMicros: number): Promise<void> {
    for (const [path, atMicros] of this.#youngest) {
      if (!hasExpired({ atMicros }, nowMicros)) continue;
      this.#youngest.delete(path);
      await unlink(path);
    }
  }

  #note(path: string, requests: readonly CompletedRequest[]): void {
    this.#youngest.set(
      path,
      requests.reduce((latest, { atMicros }) => Math.max(latest, atMicros), 0),
    );
  }
}

function parseRequest(line: string): CompletedRequest[] {
  try {
    return [JSON.parse(line) as CompletedRequest];
  } catch {
    return [];
  }
}
