// The write-ahead log of the intake: records are durable here before they are acknowledged. Group commit: one sync for many
// requests. A segment is deleted when the store has flushed all of it. Its requests then move to the idempotency log until
// they expire, and its sequence numbers are kept for good (sequences.ts).
import { copyFile, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import type { Observe } from '../observe/event.ts';
import { createDirectory, syncDirectory } from '../system/files.ts';
import type { IdempotencyRecord } from './idempotency-index.ts';
import { IdempotencyLog } from './idempotency-log.ts';
import { readSequences, type Sequences, writeSequences } from './sequences.ts';
import { encodeBlock, type SpoolBlock, type SpoolBlockHeader, SpoolSegment } from './spool-segment.ts';

export function spoolDirectoryIn(dataDirectory: string): string {
  return join(dataDirectory, 'spool');
}

const SEGMENT_BYTES = 32 * 1024 * 1024;

interface PendingAppend {
  readonly header: SpoolBlockHeader;
  readonly bytes: readonly Uint8Array[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Spool {
  readonly #directory: string;
  readonly #idempotencyLog: IdempotencyLog;
  /** The oldest first. Appends go to the last one. */
  readonly #segments: SpoolSegment[];
  readonly #nextSequences: Map<LogKind, number>;
  readonly #cursor: SpoolCursor;
  readonly #pending: PendingAppend[] = [];
  #committing: Promise<void> | undefined;
  #notifyAppend = () => {};
  #closed = false;

  /** `segments` has at least one element. */
  private constructor(
    directory: string,
    idempotencyLog: IdempotencyLog,
    segments: SpoolSegment[],
    nextSequences: Map<LogKind, number>,
  ) {
    this.#directory = directory;
    this.#idempotencyLog = idempotencyLog;
    this.#segments = segments;
    this.#nextSequences = nextSequences;
    this.#cursor = new SpoolCursor(segments);
  }

  /** The caller must hold the lock of the data directory. `seenUpTo` comes from the store that will apply the records. */
  static async open(
    directory: string,
    seenUpTo: (kind: LogKind) => number,
    observe: Observe,
  ): Promise<{ spool: Spool; requests: readonly IdempotencyRecord[] }> {
    createDirectory(directory);
    const segments: SpoolSegment[] = [];
    try {
      for await (const segment of openSegments(directory, observe)) segments.push(segment);
      if (segments.length === 0) segments.push(await createSegment(directory, 1));
      const savedSequences = await readSequences(directory);
      const { nextSequences, isAheadOfSpool } = findNextSequences(savedSequences, segments, seenUpTo);
      // The next start may use another store, which does not know these numbers.
      if (isAheadOfSpool) await writeSequences(directory, nextSequences);
      const idempotencyLog = new IdempotencyLog(directory);
      const requests = [...(await idempotencyLog.read()), ...segments.flatMap(segment => segment.requests)];
      return { spool: new Spool(directory, idempotencyLog, segments, nextSequences), requests };
    } catch (error) {
      for (const segment of segments) await segment.close();
      throw error;
    }
  }

  /** Bytes that were not read yet. */
  get unappliedBytes(): number {
    return this.#cursor.unreadBytes;
  }

  /** Bytes on disk. */
  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** Resolves when the records are durable. If it rejects, none of them is stored. */
  append(kind: LogKind, count: number, lines: Uint8Array, request?: IdempotencyRecord): Promise<void> {
    // After close() the list of segments is empty, so a new segment would get the number of an older one.
    if (this.#closed) return Promise.reject(new Error('the spool is closed'));
    const first = this.#nextSequences.get(kind) ?? 0;
    this.#nextSequences.set(kind, first + count); // a failed write leaves a gap, which is harmless
    const header = {
      form: LINE_FORMAT_VERSION,
      kind,
      first,
      count,
      bytes: lines.length,
      ...(request === undefined ? {} : { request }),
    };
    return new Promise((resolve, reject) => {
      this.#pending.push({ header, bytes: encodeBlock(header, lines), resolve, reject });
      this.#committing ??= this.#commitPending();
    });
  }

  /** Resolves when there are unread records, or when the spool is closed. */
  async waitForRecords(): Promise<void> {
    while (this.#cursor.unreadBytes === 0 && !this.#closed)
      await new Promise<void>(resolve => {
        this.#notifyAppend = resolve;
      });
  }

  /** Reads the next blocks, about `maxBytes`. Returns the same blocks again until `done` is called. */
  read(maxBytes: number): Promise<{ blocks: readonly SpoolBlock[]; done: () => void }> {
    return this.#cursor.read(maxBytes);
  }

  /** Returns the kinds with records in the oldest segment that the store has not flushed. */
  unflushedKindsInOldest(flushedUpTo: (kind: LogKind) => number): LogKind[] {
    const endSequences = [...(this.#segments[0]?.endSequences ?? [])];
    return endSequences.filter(([kind, end]) => end > flushedUpTo(kind)).map(([kind]) => kind);
  }

  /** Deletes the oldest segments as long as the store has flushed all of their records. */
  async deleteFlushed(flushedUpTo: (kind: LogKind) => number, nowMicros: number): Promise<void> {
    for (let oldest = this.#segments[0]; oldest !== undefined; oldest = this.#segments[0]) {
      const isInUse = oldest === this.#segments.at(-1) || oldest === this.#cursor.segment;
      if (isInUse || this.unflushedKindsInOldest(flushedUpTo).length > 0) break;
      await this.#idempotencyLog.write(oldest.number, oldest.requests, nowMicros);
      await writeSequences(this.#directory, this.#nextSequences);
      this.#segments.shift();
      await oldest.close();
      await unlink(oldest.path);
    }
    await this.#idempotencyLog.deleteExpired(nowMicros);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#committing;
    this.#notifyAppend();
    for (const segment of this.#segments.splice(0)) await segment.close();
  }

  /** Writes all pending appends with one sync. Appends that arrive meanwhile wait for the next sync. */
  async #commitPending(): Promise<void> {
    while (this.#pending.length > 0) {
      const group = this.#pending.splice(0);
      const bytes = Buffer.concat(group.flatMap(({ bytes }) => bytes));
      try {
        const segment = await this.#writableSegment();
        await segment.append(
          group.map(({ header }) => header),
          bytes,
        );
        this.#cursor.unreadBytes += bytes.length;
        this.#notifyAppend();
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    // No await since the check of #pending, so an append after it finds `undefined` and starts its own flush.
    this.#committing = undefined;
  }

  async #writableSegment(): Promise<SpoolSegment> {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.bytes < SEGMENT_BYTES) return last;
    const segment = await createSegment(this.#directory, (last?.number ?? 0) + 1);
    this.#segments.push(segment);
    return segment;
  }
}

/** A read position in the segments of a spool, and the number of bytes after it. */
class SpoolCursor {
  /** The list of the spool, which adds and deletes segments. */
  readonly #segments: readonly SpoolSegment[];
  #segment: SpoolSegment | undefined;
  #offset = 0;
  unreadBytes: number;

  /** Starts at the oldest segment. */
  constructor(segments: readonly SpoolSegment[]) {
    this.#segments = segments;
    this.#segment = segments[0];
    this.unreadBytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** The segment that is being read. */
  get segment(): SpoolSegment | undefined {
    return this.#segment;
  }

  async read(maxBytes: number): Promise<{ blocks: readonly SpoolBlock[]; done: () => void }> {
    this.#skipToUnread();
    const segment = this.#segment;
    const offset = this.#offset;
    if (segment === undefined) return { blocks: [], done: () => {} };
    const { blocks, end } = await segment.read(offset, maxBytes);
    const done = () => {
      this.#segment = segment;
      this.#offset = end;
      this.unreadBytes -= end - offset;
    };
    return { blocks, done };
  }

  /** Moves to the next segment if the current one was read to its end. */
  #skipToUnread(): void {
    while (this.#segment !== undefined && this.#offset === this.#segment.bytes) {
      const next = this.#segments[this.#segments.indexOf(this.#segment) + 1];
      if (next === undefined) return;
      this.#segment = next;
      this.#offset = 0;
    }
  }
}

/** Opens the existing segments, the oldest first, and truncates each after its last valid block. */
async function* openSegments(directory: string, observe: Observe): AsyncGenerator<SpoolSegment> {
  const names = (await readdir(directory)).filter(name => /^\d+\.spool$/.test(name)).sort();
  for (const [index, name] of names.entries()) {
    const path = join(directory, name);
    const { segment, lostBytes, isDamaged } = await SpoolSegment.open(Number.parseInt(name, 10), path);
    yield segment; // before the truncation, so that the caller closes the segment if that fails
    if (lostBytes === 0) continue;
    // An incomplete block at the end of the last segment was being written at the crash, so it was not acknowledged.
    const isTorn = index === names.length - 1 && !isDamaged;
    if (!isTorn) await copyFile(path, `${path}.damaged`);
    await segment.truncateTail();
    observe({ type: 'spool_truncated', path, lostBytes, isTorn });
  }
}

/** `isAheadOfSpool` says that the store has seen sequence numbers that neither the file nor the segments contain. */
function findNextSequences(
  savedSequences: Sequences,
  segments: readonly SpoolSegment[],
  seenUpTo: (kind: LogKind) => number,
): { nextSequences: Map<LogKind, number>; isAheadOfSpool: boolean } {
  const nextSequences = new Map<LogKind, number>();
  let isAheadOfSpool = false;
  for (const kind of LOG_KINDS) {
    const ends = segments.map(segment => segment.endSequences.get(kind) ?? 0);
    const inSpool = Math.max(savedSequences.get(kind) ?? 0, ...ends);
    const inStore = seenUpTo(kind);
    nextSequences.set(kind, Math.max(inSpool, inStore));
    isAheadOfSpool ||= inStore > inSpool;
  }
  return { nextSequences, isAheadOfSpool };
}

async function createSegment(directory: string, number: number): Promise<SpoolSegment> {
  const path = join(directory, `${String(number).padStart(12, '0')}.spool`);
  const segment = await SpoolSegment.create(number, path);
  try {
    await syncDirectory(directory);
    return segment;
  } catch (error) {
    await segment.close();
    throw error;
  }
}
