// Keeps requests on disk for `Idempotency`. The requests of deleted spool segments are in one small `.requests` file per segment,
// one JSON object per line, until they expire. After a clean stop, `undelivered.json` has the keys of the requests with
// `forgetOnceDelivered` (idempotency.ts) whose response may not have been delivered.
import { open, readdir, readFile, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Observe } from '../observe/event.ts';
import { syncDirectory, writeFileDurably } from '../system/files.ts';
import {
  type CompletedRequest,
  type Idempotency,
  type IntakeResult,
  TTL_MS,
  toRemembered,
} from './idempotency.ts';
import type { RecordError } from './parse-body.ts';

/** A request on disk, in a `.requests` file and in a block header of the spool. The names are part of both formats. */
export interface DiskRequest {
  readonly key: string;
  readonly digest: string;
  readonly atMicros: number;
  readonly answer: IntakeResult;
  /**
   * See `forgetOnceDelivered` in idempotency.ts. Versions up to 0.2.0 ignore this field. That is harmless: they store every such
   * request as a new one, without looking for an earlier one.
   */
  readonly onlyIfUndelivered?: true;
}

const UNDELIVERED_FILE = 'undelivered.json';
const LINES_PER_WRITE = 1_000;

export function requestToDisk(request: CompletedRequest): DiskRequest {
  const { key, digest, atMicros, result, forgetOnceDelivered } = request;
  const answer = toRemembered(result);
  return { key, digest, atMicros, answer, ...(forgetOnceDelivered ? { onlyIfUndelivered: true } : {}) };
}

/** Returns undefined if the value is not a request. */
export function requestFromDisk(value: unknown): CompletedRequest | undefined {
  const { key, digest, atMicros, answer, onlyIfUndelivered } = (value ?? {}) as Partial<DiskRequest>;
  if (typeof key !== 'string' || typeof digest !== 'string' || typeof atMicros !== 'number') return undefined;
  if (typeof answer?.accepted !== 'number' || typeof answer.rejected !== 'number') return undefined;
  if (!Array.isArray(answer.errors)) return undefined;
  const [error] = answer.errors as (Partial<RecordError> | null)[];
  if (error !== undefined && typeof error?.message !== 'string') return undefined;
  return { key, digest, atMicros, result: answer, forgetOnceDelivered: onlyIfUndelivered === true };
}

/** Parses a line of a `.requests` file. Returns undefined if it is not a request. */
export function parseRequestLine(line: string): CompletedRequest | undefined {
  try {
    return requestFromDisk(JSON.parse(line));
  } catch {
    return undefined;
  }
}

export class IdempotencyLog {
  readonly #directory: string;
  readonly #idempotency: Pick<Idempotency, 'restore' | 'requestsOf' | 'undeliveredKeys'>;
  readonly #nowMs: () => number;
  /** By path of a file: the time, on the monotonic clock, at which all of its requests have expired. */
  readonly #expiresAtMs = new Map<string, number>();
  /** The keys that the last clean stop wrote. Undefined: there was no clean stop, so every response may be undelivered. */
  #undelivered: ReadonlySet<string> | undefined;

  constructor(
    directory: string,
    idempotency: Pick<Idempotency, 'restore' | 'requestsOf' | 'undeliveredKeys'>,
    nowMs: () => number,
  ) {
    this.#directory = directory;
    this.#idempotency = idempotency;
    this.#nowMs = nowMs;
  }

  /** Restores the requests of all files. Skips malformed lines and reports them. */
  async load(observe: Observe): Promise<void> {
    this.#undelivered = await readFile(join(this.#directory, UNDELIVERED_FILE), 'utf8')
      .then(text => new Set(JSON.parse(text) as string[]))
      .catch(() => undefined);
    const names = (await readdir(this.#directory)).filter(name => /^\d+\.requests$/.test(name)).sort();
    for (const name of names) {
      const path = join(this.#directory, name);
      let malformedLines = 0;
      const file = await open(path);
      for await (const line of file.readLines()) {
        const request = parseRequestLine(line);
        if (request === undefined) malformedLines++;
        else this.restore(request, Number.parseInt(name, 10));
      }
      if (malformedLines > 0) observe({ type: 'idempotency_log_damaged', path, malformedLines });
      this.#trackFile(path);
    }
  }

  /** Restores a request from the disk, unless it can no longer have a repeat, because its response was delivered. */
  restore(request: CompletedRequest, segmentNumber: number): void {
    const isDelivered = request.forgetOnceDelivered && this.#undelivered?.has(request.key) === false;
    if (!isDelivered) this.#idempotency.restore(request, segmentNumber);
  }

  /** Writes the requests of a segment that have not expired. They are durable when the promise resolves. */
  async write(segmentNumber: number): Promise<void> {
    const requests = this.#idempotency.requestsOf(segmentNumber);
    if (requests.length === 0) return;
    const path = join(this.#directory, `${String(segmentNumber).padStart(12, '0')}.requests`);
    // All segments share the temporary file, so that a crash leaves at most one.
    const temporary = join(this.#directory, 'requests.new');
    await writeFileDurably(path, formatRequests(requests), { temporary });
    this.#trackFile(path);
  }

  /** The paths of the files that are complete. */
  get files(): readonly string[] {
    return [...this.#expiresAtMs.keys()];
  }

  async deleteExpired(): Promise<void> {
    for (const [path, expiresAtMs] of this.#expiresAtMs) {
      if (this.#nowMs() < expiresAtMs) continue;
      this.#expiresAtMs.delete(path);
      await unlink(path);
    }
  }

  /** Call it before the first request is accepted: the list of the last stop says nothing about later requests. */
  async deleteUndelivered(): Promise<void> {
    await rm(join(this.#directory, UNDELIVERED_FILE), { force: true });
    await syncDirectory(this.#directory);
  }

  /** Call it at a clean stop. If it fails, all responses count as undelivered, as after a crash. */
  async writeUndelivered(): Promise<void> {
    const keys = JSON.stringify(this.#idempotency.undeliveredKeys());
    await writeFileDurably(join(this.#directory, UNDELIVERED_FILE), keys).catch(() => {});
  }

  #trackFile(path: string): void {
    this.#expiresAtMs.set(path, this.#nowMs() + TTL_MS);
  }
}

async function* formatRequests(requests: readonly CompletedRequest[]): AsyncGenerator<Buffer> {
  for (let start = 0; start < requests.length; start += LINES_PER_WRITE) {
    const group = requests.slice(start, start + LINES_PER_WRITE);
    yield Buffer.from(group.map(request => `${JSON.stringify(requestToDisk(request))}\n`).join(''));
  }
}
