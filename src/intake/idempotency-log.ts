// Keeps requests on disk for the idempotency index. The requests of deleted spool segments are in one small `.requests` file per
// segment, one JSON object per line, until they expire. After a clean stop, `undelivered.json` has the keys of the requests with
// `forgetOnceDelivered` (idempotency-index.ts) whose response may not have been delivered.
import { createReadStream } from 'node:fs';
import { readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Observe } from '../observe/event.ts';
import { syncDirectory, writeFileDurably } from '../system/files.ts';
import { type CompletedRequest, type IntakeResult, TTL_MS, toRemembered } from './idempotency-index.ts';
import type { RecordError } from './parse-body.ts';

/** A request on disk, in a `.requests` file and in a block header of the spool. The names are part of both formats. */
export interface DiskRequest {
  readonly key: string;
  readonly digest: string;
  readonly atMicros: number;
  readonly answer: IntakeResult;
  /**
   * See `forgetOnceDelivered` in idempotency-index.ts. Versions up to 0.2.0 ignore this field. That is harmless: they store every
   * such request as a new one, without looking for an earlier one.
   */
  readonly onlyIfUndelivered?: true;
}

/** The part of the idempotency index that the spool and the idempotency log use to keep its requests on disk and restore them. */
export interface RememberedRequests {
  /** Called for each request on disk, about in the order of arrival. */
  restore(request: CompletedRequest, segmentNumber: number): void;
  /** The requests of a segment that have to be kept when the segment is deleted. */
  requestsOf(segmentNumber: number): readonly CompletedRequest[];
}

const UNDELIVERED_FILE = 'undelivered.json';
const READ_BYTES = 1024 * 1024;
/** A line above this size is malformed. The longest valid lines, from version 0.2.0 with 20 errors each, have about 10 KB. */
const MAX_LINE_BYTES = 1024 * 1024;
const LINES_PER_WRITE = 1_000;
const NEWLINE = 0x0a;

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

export class IdempotencyLog {
  readonly #directory: string;
  readonly #index: RememberedRequests;
  readonly #nowMs: () => number;
  /** By path of a file: the time, on the monotonic clock, at which all of its requests have expired. */
  readonly #expiresAtMs = new Map<string, number>();

  constructor(directory: string, index: RememberedRequests, nowMs: () => number) {
    this.#directory = directory;
    this.#index = index;
    this.#nowMs = nowMs;
  }

  /** Reads all files in parts, so that a large file needs little memory. Skips malformed lines and reports them. */
  async load(observe: Observe): Promise<void> {
    const names = (await readdir(this.#directory)).filter(name => /^\d+\.requests$/.test(name)).sort();
    for (const name of names) {
      const path = join(this.#directory, name);
      let malformedLines = 0;
      for await (const lines of readLines(path))
        for (const line of lines) {
          if (line === '') continue;
          const request = parseRequest(line);
          if (request === undefined) malformedLines++;
          else this.#index.restore(request, Number.parseInt(name, 10));
        }
      if (malformedLines > 0) observe({ type: 'idempotency_log_damaged', path, malformedLines });
      this.#trackFile(path);
    }
  }

  /** Writes the requests of a segment that have not expired. They are durable when the promise resolves. */
  async write(segmentNumber: number): Promise<void> {
    const requests = this.#index.requestsOf(segmentNumber);
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

  #trackFile(path: string): void {
    this.#expiresAtMs.set(path, this.#nowMs() + TTL_MS);
  }
}

/** Written at a clean stop. If that fails, all responses count as undelivered, as after a crash. */
export async function writeUndelivered(directory: string, keys: readonly string[]): Promise<void> {
  await writeFileDurably(join(directory, UNDELIVERED_FILE), JSON.stringify(keys)).catch(() => {});
}

/** Returns the keys that the last clean stop wrote. Undefined: there was no clean stop. */
export async function readUndelivered(directory: string): Promise<ReadonlySet<string> | undefined> {
  try {
    return new Set(JSON.parse(await readFile(join(directory, UNDELIVERED_FILE), 'utf8')) as string[]);
  } catch {
    return undefined;
  }
}

/** Call it before the first request is accepted: the file says nothing about later requests. */
export async function deleteUndelivered(directory: string): Promise<void> {
  try {
    await unlink(join(directory, UNDELIVERED_FILE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  await syncDirectory(directory);
}

async function* formatRequests(requests: readonly CompletedRequest[]): AsyncGenerator<Buffer> {
  for (let start = 0; start < requests.length; start += LINES_PER_WRITE) {
    const group = requests.slice(start, start + LINES_PER_WRITE);
    yield Buffer.from(group.map(request => `${JSON.stringify(requestToDisk(request))}\n`).join(''));
  }
}

async function* readLines(path: string): AsyncGenerator<string[]> {
  let rest: Uint8Array = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>) {
    const data = Buffer.concat([rest, chunk]);
    const end = data.lastIndexOf(NEWLINE) + 1;
    yield data.toString('utf8', 0, end).split('\n');
    // Drops the beginning of a line that is too long. Its end is then read as a line of its own, which is malformed.
    rest = data.length - end > MAX_LINE_BYTES ? Buffer.alloc(0) : data.subarray(end);
  }
  yield [Buffer.from(rest).toString('utf8')];
}

function parseRequest(line: string): CompletedRequest | undefined {
  try {
    return requestFromDisk(JSON.parse(line));
  } catch {
    return undefined;
  }
}
