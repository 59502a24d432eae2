// Keeps the requests of deleted spool segments on disk until they expire: one small `.requests` file per segment, one JSON
// object per line. Restores the idempotency index after a restart.
import { open, readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../system/files.ts';
import { hasExpired, type IdempotencyRecord } from './idempotency-index.ts';

export class IdempotencyLog {
  readonly #directory: string;
  /** By path, the time of the latest request in the file. */
  readonly #latestMicros = new Map<string, number>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Reads all files. Skips a line that a crash left incomplete: its segment still exists and has the request too. */
  async read(): Promise<IdempotencyRecord[]> {
    const names = (await readdir(this.#directory)).filter(name => name.endsWith('.requests')).sort();
    const allRequests: IdempotencyRecord[] = [];
    for (const name of names) {
      const path = join(this.#directory, name);
      const requests = (await readFile(path, 'utf8')).split('\n').flatMap(parseRequest);
      allRequests.push(...requests);
      this.#trackFile(path, requests);
    }
    return allRequests;
  }

  /** Writes the requests of a segment that have not expired. They are durable when the promise resolves. */
  async write(
    segmentNumber: number,
    requests: readonly IdempotencyRecord[],
    nowMicros: number,
  ): Promise<void> {
    const activeRequests = requests.filter(request => !hasExpired(request, nowMicros));
    if (activeRequests.length === 0) return;
    const path = join(this.#directory, `${String(segmentNumber).padStart(12, '0')}.requests`);
    const file = await open(path, 'w', 0o600);
    try {
      await file.writeFile(activeRequests.map(request => `${JSON.stringify(request)}\n`).join(''));
      await file.sync();
    } finally {
      await file.close();
    }
    await syncDirectory(this.#directory);
    this.#trackFile(path, activeRequests);
  }

  async deleteExpired(nowMicros: number): Promise<void> {
    for (const [path, atMicros] of this.#latestMicros) {
      if (!hasExpired({ atMicros }, nowMicros)) continue;
      this.#latestMicros.delete(path);
      await unlink(path);
    }
  }

  #trackFile(path: string, requests: readonly IdempotencyRecord[]): void {
    this.#latestMicros.set(
      path,
      requests.reduce((latest, { atMicros }) => Math.max(latest, atMicros), 0),
    );
  }
}

function parseRequest(line: string): IdempotencyRecord[] {
  try {
    return [JSON.parse(line) as IdempotencyRecord];
  } catch {
    return [];
  }
}
