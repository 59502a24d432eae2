// Where records are durable before they are acknowledged: segments on disk, flushed for many requests at once. A segment
// goes when the store keeps all of it; the requests in it are remembered a while longer (request-notes.ts), its numbers for ever
// (next-numbers.ts).
import { copyFile, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import type { Observe } from '../observe/event.ts';
import { createDirectory, syncDirectory } from '../system/files.ts';
import type { CompletedRequest } from './idempotency-index.ts';
import { IdempotencyLog } from './idempotency-log.ts';
import { readSequences, writeSequences } from './sequences.ts';
import { encodeBlock, type SpoolBlock, type SpoolBlockHeader } from './spool-block.ts';
import { SpoolSegment } from './spool-segment.ts';

export function spoolDirectoryIn(dataDirectory: string): string {
  return join(dataDirectory, 'spool');
}

const SEGMENT_BYTES = 32 * 1024 * 1024;

interface Waiting {
  readonly head: SpoolBlockHeader;
  readonly bytes: readonly Uint8Array[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Spool {
  readonly #folder: string;
  readonly #idempotencyLog: IdempotencyLog;
  /** The oldest first; the last one is written. */
  readonly #segments: SpoolSegment[];
  readonly #nextSequences = new Map<LogKind, number>();
  readonly #pending: Waiting[] = [];
  #flushing: Promise<void> | undefined;
  /** Where reading goes on. */
  #reading: { segment: SpoolSegment; offset: number };
  #unreadBytes = 0;
  #onAppend = () => {};
  #closed = false;

  private constructor(folder: string, notes: IdempotencyLog, segments: SpoolSegment[], first: SpoolSegment) {
    this.#folder = folder;
    this.#idempotencyLog = notes;
    this.#segments = segments;
    this.#reading = { segment: first, offset: 0 };
  }

  /** To be called by whoever holds the data directory. `reached` is the number after the last that the store met of a kind. */
  static async open(
    folder: string,
    reached: (kind: LogKind) => number,
    observe: Observe,
  ): Promise<{ spool: Spool; requests: readonly CompletedRequest[] }> {
    createDirectory(folder);
    const segments: SpoolSegment[] = [];
    const names = (await readdir(folder)).filter(name => /^\d+\.spool$/.test(name)).sort();
    for (const [index, name] of names.entries()) {
      const path = join(folder, name);
      const { segment, lostBytes, isDamaged } = await SpoolSegment.open(Number.parseInt(name, 10), path);
      segments.push(segment);
      if (lostBytes === 0) continue;
      // The end of the last one is what was being written when the process ended, and nobody was told that it was stored.
      const isTorn = index === names.length - 1 && !isDamaged;
      if (!isTorn) await copyFile(path, `${path}.damaged`);
      await segment.truncateTail();
      observe({ type: 'spool_truncated', path, lostBytes, isTorn });
    }
    const last = segments.at(-1) ?? (await createSegment(folder, 1));
    if (segments.length === 0) segments.push(last);
    const notes = new IdempotencyLog(folder);
    const spool = new Spool(folder, notes, segments, segments[0] ?? last);
    const noted = await readSequences(folder);
    let isNoted = true;
    for (const kind of LOG_KINDS) {
      const ends = segments.map(segment => segment.ends.get(kind) ?? 0);
      const known = Math.max(noted.get(kind) ?? 0, ...ends);
      spool.#nextSequences.set(kind, Math.max(known, reached(kind)));
      isNoted &&= known >= reached(kind);
    }
    if (!isNoted) await writeSequences(folder, spool.#nextSequences); // the next run may have another store
    spool.#unreadBytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
    const requests = [...(await notes.read()), ...segments.flatMap(segment => segment.requests)];
    return { spool, requests };
  }

  /** Bytes that wait to be read. */
  get unappliedBytes(): number {
    return this.#unreadBytes;
  }

  /** All that lies on disk. */
  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** Resolves when the records are durable; where it rejects, nothing of them is kept. */
  append(kind: LogKind, count: number, lines: Uint8Array, request?: CompletedRequest): Promise<void> {
    // A segment that began after the end would bear the number of an older one, and be read before it.
    if (this.#closed) return Promise.reject(new Error('the spool is closed'));
    const first = this.#nextSequences.get(kind) ?? 0;
    this.#nextSequences.set(kind, first + count); // numbers of what could not be written stay unused
    const head = {
      form: LINE_FORMAT_VERSION,
      kind,
      first,
      count,
      bytes: lines.length,
      ...(request === undefined ? {} : { request }),
    };
    return new Promise((resolve, reject) => {
      this.#pending.push({ head, bytes: encodeBlock(head, lines), resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Resolves when there is something to read. */
  async waitForRecords(): Promise<void> {
    while (this.#unreadBytes === 0)
      await new Promise<void>(resolve => {
        this.#onAppend = resolve;
      });
  }

  /** The next blocks, about `most` bytes; given again until `done` is called. */
  async read(most: number): Promise<{ blocks: readonly SpoolBlock[]; done: () => void }> {
    let { segment, offset } = this.#reading;
    while (offset === segment.bytes) {
      const following = this.#segments[this.#segments.indexOf(segment) + 1];
      if (following === undefined) break;
      [segment, offset] = [following, 0];
    }
    this.#reading = { segment, offset };
    const { blocks, end } = await segment.read(offset, most);
    const done = () => {
      this.#reading = { segment, offset: end };
      this.#unreadBytes -= end - offset;
    };
    return { blocks, done };
  }

  /** Kinds with records in the oldest segment that the store does not keep yet. */
  kindsInOldest(settled: (kind: LogKind) => number): LogKind[] {
    const ends = [...(this.#segments[0]?.ends ?? [])];
    return ends.filter(([kind, end]) => end > settled(kind)).map(([kind]) => kind);
  }

  /** Removes the segments of which the store keeps everything. */
  async deleteFlushed(settled: (kind: LogKind) => number, nowMicros: number): Promise<void> {
    for (let oldest = this.#segments[0]; oldest !== undefined; oldest = this.#segments[0]) {
      const isOpen = oldest === this.#segments.at(-1) || oldest === this.#reading.segment;
      if (isOpen || this.kindsInOldest(settled).length > 0) break;
      await this.#idempotencyLog.write(oldest.number, oldest.requests, nowMicros);
      await writeSequences(this.#folder, this.#nextSequences);
      this.#segments.shift();
      await oldest.close();
      await unlink(oldest.path);
    }
    await this.#idempotencyLog.deleteExpired(nowMicros);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#flushing;
    this.#unreadBytes = Number.POSITIVE_INFINITY; // wakes who waits for more
    this.#onAppend();
    for (const segment of this.#segments.splice(0)) await segment.close();
  }

  /** Everything that waits goes to disk with one flush; what comes meanwhile goes with the next. */
  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const group = this.#pending.splice(0);
      const bytes = Buffer.concat(group.flatMap(({ bytes }) => bytes));
      try {
        const segment = await this.#writable();
        await segment.append(
          group.map(({ head }) => head),
          bytes,
        );
        this.#unreadBytes += bytes.length;
        this.#onAppend();
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    // In the same step that found nothing waiting: whoever comes after it begins a flush of his own.
    this.#flushing = undefined;
  }

  async #writable(): Promise<SpoolSegment> {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.bytes < SEGMENT_BYTES) return last;
    const segment = await createSegment(this.#folder, (last?.number ?? 0) + 1);
    this.#segments.push(segment);
    return segment;
  }
}

async function createSegment(folder: string, number: number): Promise<SpoolSegment> {
  const segment = await SpoolSegment.create(
    number,
    join(folder, `${String(number).padStart(12, '0')}.spool`),
  );
  try {
    await syncDirectory(folder);
    return segment;
  } catch (error) {
    await segment.close();
    throw error;
  }
}
