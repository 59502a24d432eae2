// Keeps the requests of deleted spool segments on disk until they expire: one small `.requests` file per segment, one JSON
// object per line. The idempotency index is rebuilt from it after a restart.
import { open, readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../system/files.ts';
import { type CompletedRequest, hasExpired, type IntakeResult } from './idempotency-index.ts';

/** A request on disk, in a `.requests` file and in a block header of the spool. The names are part of both formats. */
export interface DiskRequest {
  readonly key: string;
  readonly digest: string;
  readonly atMicros: number;
  readonly answer: IntakeResult;
}

export function requestToDisk({ key, digest, atMicros, result }: CompletedRequest): DiskRequest {
  return { key, digest, atMicros, answer: result };
}

export function requestFromDisk({ key, digest, atMicros, answer }: DiskRequest): CompletedRequest {
  return { key, digest, atMicros, result: answer };
}

export class IdempotencyLog {
  readonly #directory: string;
  /** For each file, by path, the time of its latest request. */
  readonly #latestMicros = new Map<string, number>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Reads all files. Skips a line that a crash left incomplete: its segment still exists and contains the request too. */
  async read(): Promise<CompletedRequest[]> {
    const names = (await readdir(this.#directory)).filter(name => name.endsWith('.requests')).sort();
    const allRequests: CompletedRequest[] = [];
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
    requests: readonly CompletedRequest[],
    nowMicros: number,
  ): Promise<void> {
    const activeRequests = requests.filter(request => !hasExpired(request, nowMicros));
    if (activeRequests.length === 0) return;
    const path = join(this.#directory, `${String(segmentNumber).padStart(12, '0')}.requests`);
    const file = await open(path, 'w', 0o600);
    try {
      await file.writeFile(
        activeRequests.map(request => `${JSON.stringify(requestToDisk(request))}\n`).join(''),
      );
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

  #trackFile(path: string, requests: readonly CompletedRequest[]): void {
    this.#latestMicros.set(
      path,
      requests.reduce((latest, { atMicros }) => Math.max(latest, atMicros), 0),
    );
  }
}

function parseRequest(line: string): CompletedRequest[] {
  try {
    return [requestFromDisk(JSON.parse(line) as DiskRequest)];
  } catch {
    return [];
  }
}
