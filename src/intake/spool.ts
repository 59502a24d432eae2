// The write-ahead log of the intake: records are durable here before they are acknowledged. Group commit: one sync for many
// requests. A segment is deleted when the store has flushed all of its records (`Store.flushedUpTo`). A segment also has the
// idempotency keys and results of its requests; when it is deleted, they move to the idempotency log until they expire.
// sequences.ts saves the next sequence number of each kind, so that no number is reused after its segment is deleted.
//
// Every sequence number named `end…` or `…UpTo` is exclusive: it is the number after the last record. `durableUpTo` and
// `flushedUpTo` are about the store, not the spool: the interface `Store` defines them (store/store.ts).
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION, type LogLines } from '../domain/log-line.ts';
import type { Observe } from '../observe/event.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { createDirectory, syncDirectory } from '../system/files.ts';
import { readCompleteBytes, writeCleanStop } from './clean-stop.ts';
import type { CompletedRequest } from './idempotency-index.ts';
import { IdempotencyLog, type RememberedRequests } from './idempotency-log.ts';
import { findNextSequences, formatSequences, readSequences, writeSequences } from './sequences.ts';
import { encodeBlock, type SpoolBlockHeader } from './spool-block.ts';
import { SpoolPositions, type SpoolWindow } from './spool-positions.ts';
import { isTooShort, repairSegment } from './spool-repair.ts';
import { listSegments, SpoolSegment } from './spool-segment.ts';
import { openSpoolSnapshot, type SpoolSnapshot } from './spool-snapshot.ts';

export function spoolDirectoryIn(dataDirectory: string): string {
  return join(dataDirectory, 'spool');
}

/** A segment of this size gets no further appends. */
const MAX_SEGMENT_BYTES = 32 * 1024 * 1024;

/** Records of one kind and one request. */
export interface SpoolAppend extends LogLines {
  /** The intake always passes it. Only tests omit it. */
  readonly request?: CompletedRequest | undefined;
}

interface PendingAppend {
  readonly blocks: readonly PendingBlock[];
  readonly resolve: (segmentNumber: number) => void;
  readonly reject: (error: unknown) => void;
}

interface PendingBlock {
  readonly header: SpoolBlockHeader;
  readonly blockBytes: number;
  readonly chunks: readonly Uint8Array[];
}

export class Spool {
  readonly #directory: string;
  readonly #idempotencyLog: IdempotencyLog | undefined;
  /** The oldest first. Appends go to the last one. */
  readonly #segments: SpoolSegment[];
  /** Closed segments that are no longer needed, whose files still exist. */
  readonly #toUnlink: SpoolSegment[] = [];
  readonly #nextSequences: Map<LogKind, number>;
  readonly #positions: SpoolPositions;
  readonly #clock: Clock;
  readonly #pending: PendingAppend[] = [];
  #committing: Promise<void> | undefined;
  #notifyAppend = () => {};
  #closed = false;

  /** `segments` has at least one element. */
  private constructor(
    directory: string,
    idempotencyLog: IdempotencyLog | undefined,
    segments: SpoolSegment[],
    nextSequences: Map<LogKind, number>,
    clock: Clock,
  ) {
    this.#clock = clock;
    this.#directory = directory;
    this.#idempotencyLog = idempotencyLog;
    this.#segments = segments;
    this.#nextSequences = nextSequences;
    this.#positions = new SpoolPositions(segments);
  }

  /**
   * The caller must hold the lock of the data directory. `durableUpTo` comes from the store that will apply the records.
   * `requests.index` receives the requests of the idempotency log and of the segments. A caller that omits `requests` must
   * not delete segments: their idempotency keys would be lost.
   */
  static async open(
    directory: string,
    durableUpTo: (kind: LogKind) => number,
    observe: Observe,
    requests?: { readonly index: RememberedRequests; readonly nowMs: () => number },
    clock: Clock = systemClock,
  ): Promise<Spool> {
    createDirectory(directory);
    const idempotencyLog =
      requests === undefined ? undefined : new IdempotencyLog(directory, requests.index, requests.nowMs);
    await idempotencyLog?.load(observe);
    const segments: SpoolSegment[] = [];
    try {
      for await (const segment of openSegments(directory, durableUpTo, observe, requests?.index))
        segments.push(segment);
      await syncLast(directory, segments);
      const segmentEnds = segments.map(({ endSequences }) => endSequences);
      if (segments.length === 0) segments.push(await createSegment(directory, 1));
      const savedSequences = await readSequences(directory);
      const { nextSequences, kindsAhead, isIncomplete } = findNextSequences(
        savedSequences,
        segmentEnds,
        durableUpTo,
      );
      const isTruncated = await isLastSegmentTruncated(directory, segments);
      if (isIncomplete || isTruncated) observe({ type: 'spool_incomplete', directory, kinds: kindsAhead });
      // For `kindsAhead`, the store has higher sequence numbers than the spool. The next start may use a different store, so save
      // these numbers in the spool.
      if (kindsAhead.length > 0) await writeSequences(directory, nextSequences);
      return new Spool(directory, idempotencyLog, segments, nextSequences, clock);
    } catch (error) {
      for (const segment of segments) await segment.close();
      throw error;
    }
  }

  /** Length of the blocks that the store has not applied. */
  get unappliedBytes(): number {
    return this.unappliedKinds.reduce((sum, kind) => sum + this.unappliedBytesOf(kind), 0);
  }

  /** The kinds with blocks that the store has not applied. */
  get unappliedKinds(): readonly LogKind[] {
    return this.#positions.unappliedKinds;
  }

  unappliedBytesOf(kind: LogKind): number {
    return this.#positions.unappliedBytesOf(kind);
  }

  /** The age of the oldest block that the store has not applied, in milliseconds; 0 if there is none. */
  get oldestUnappliedAgeMs(): number {
    const oldest = this.#positions.oldestAtMs;
    return oldest === undefined ? 0 : Math.max(0, toMs(this.#clock()) - oldest);
  }

  /** Length of all segments on disk. */
  get diskBytes(): number {
    return [...this.#toUnlink, ...this.#segments].reduce((sum, segment) => sum + segment.validBytes, 0);
  }

  /** `appendAll` for the records of one kind. Only tests use it. */
  append(kind: LogKind, count: number, lines: Uint8Array, request?: CompletedRequest): Promise<number> {
    return this.appendAll([{ kind, count, lines, request }]);
  }

  /**
   * Resolves when the records are durable, with the number of their segment. If it rejects, none of them is stored, except if
   * the failed write could not be cut off and the process ends before the next append (`SpoolSegment.append`). If the process
   * crashes before the promise is settled, the first records may be stored without the others.
   */
  appendAll(appends: readonly SpoolAppend[]): Promise<number> {
    // After close() the list of segments is empty, so a new segment would get the number of an older one.
    if (this.#closed) return Promise.reject(new Error('the spool is closed'));
    const blocks = appends.map(append => this.#createBlock(append));
    return new Promise((resolve, reject) => {
      this.#pending.push({ blocks, resolve, reject });
      this.#committing ??= this.#commitPending();
    });
  }

  #createBlock({ kind, count, lines, request }: SpoolAppend): PendingBlock {
    const firstSequence = this.#nextSequences.get(kind) ?? 0;
    this.#nextSequences.set(kind, firstSequence + count); // a failed write leaves a gap, which is harmless
    const header = {
      formatVersion: LINE_FORMAT_VERSION,
      kind,
      firstSequence,
      count,
      lineBytes: lines.length,
      request,
    };
    const chunks = encodeBlock(header, lines);
    return { header, blockBytes: chunks[0].length + chunks[1].length, chunks };
  }

  /** Resolves after the next append, or when the spool is closed. */
  waitForAppend(): Promise<void> {
    return new Promise(resolve => {
      this.#notifyAppend = resolve;
    });
  }

  /**
   * Reads about `maxBytes` of one segment, from the earliest unapplied block of these kinds. Returns the unapplied blocks of
   * these kinds in it. Calls must not overlap.
   */
  read(kinds: readonly LogKind[], maxBytes: number): Promise<SpoolWindow> {
    return this.#positions.read(kinds, maxBytes);
  }

  /**
   * Returns the kinds to flush next: all kinds with unflushed records in the oldest applied segment that has any. Once they are
   * flushed, that segment can be deleted. Skips segments with unflushed records of `failingKinds`: the store fails
   * to apply later records of these kinds.
   */
  kindsToFlush(flushedUpTo: (kind: LogKind) => number, failingKinds: ReadonlySet<LogKind>): LogKind[] {
    for (const segment of this.#appliedSegments()) {
      const kinds = kindsBeyond(segment, flushedUpTo);
      if (kinds.length > 0 && !kinds.some(kind => failingKinds.has(kind))) return kinds;
    }
    return [];
  }

  /**
   * Deletes the segments in which all records of each kind are before `flushedUpTo(kind)`. A later segment can be deleted
   * before an earlier one that has unflushed records of another kind.
   */
  async deleteFlushed(flushedUpTo: (kind: LogKind) => number): Promise<void> {
    const flushed = this.#appliedSegments().filter(segment => kindsBeyond(segment, flushedUpTo).length === 0);
    try {
      for (const segment of flushed) {
        await this.#idempotencyLog?.write(segment.number);
        await writeSequences(this.#directory, this.#nextSequences);
        this.#segments.splice(this.#segments.indexOf(segment), 1);
        this.#toUnlink.push(segment);
        await segment.close();
      }
      await this.#idempotencyLog?.deleteExpired();
    } finally {
      await this.#unlinkSegments();
    }
  }

  /** A file that cannot be deleted does not stop the deletion of the others. The next call of `deleteFlushed` retries it. */
  async #unlinkSegments(): Promise<void> {
    if (this.#toUnlink.length === 0) return;
    const unlinked: SpoolSegment[] = [];
    const errors: unknown[] = [];
    for (const segment of this.#toUnlink)
      await rm(segment.path, { force: true }).then(
        () => unlinked.push(segment),
        error => errors.push(error),
      );
    await syncDirectory(this.#directory); // after an erasure, a power cut must not bring the files back
    for (const segment of unlinked) this.#toUnlink.splice(this.#toUnlink.indexOf(segment), 1);
    if (errors.length > 0) throw errors[0];
  }

  /** Length of the segments on disk with records that the store has not flushed. */
  unflushedBytes(flushedUpTo: (kind: LogKind) => number): number {
    return this.#segments.reduce(
      (sum, segment) => sum + (kindsBeyond(segment, flushedUpTo).length === 0 ? 0 : segment.validBytes),
      0,
    );
  }

  /**
   * Starts a new segment, so that the earlier ones can be deleted. Returns the number of the last earlier segment: all records
   * that were durable before the call are in it or before it.
   */
  async rotate(): Promise<number> {
    while (this.#committing !== undefined) await this.#committing;
    const last = this.#segments.at(-1);
    if (this.#closed || last === undefined) throw new Error('the spool is closed');
    if (last.validBytes === 0) return last.number - 1;
    const created = createSegment(this.#directory, last.number + 1).then(segment => {
      this.#segments.push(segment);
    });
    // Appends that arrive meanwhile wait, as they do for a commit.
    this.#committing = created.catch(() => {}).then(() => this.#commitPending());
    await created;
    return last.number;
  }

  /** Whether the store has applied all blocks of the segments up to this number, inclusive. */
  isAppliedThrough(segmentNumber: number): boolean {
    return this.#positions.isAppliedThrough(segmentNumber);
  }

  /** The number of the oldest segment on disk. */
  get firstSegmentNumber(): number {
    const numbers = [...this.#toUnlink, ...this.#segments].map(({ number }) => number);
    return numbers.length === 0 ? 0 : Math.min(...numbers);
  }

  /** The durable content of the spool at this moment. Synchronous: the caller takes the content of the store at the same moment. */
  snapshot(): SpoolSnapshot {
    return openSpoolSnapshot(
      this.#segments,
      this.#idempotencyLog?.files ?? [],
      formatSequences(this.#nextSequences),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#committing;
    this.#notifyAppend();
    const last = this.#segments.at(-1);
    if (last !== undefined) await writeCleanStop(this.#directory, last);
    for (const segment of this.#segments.splice(0)) await segment.close();
  }

  /** Writes all pending appends with one sync. Appends that arrive meanwhile wait for the next sync. */
  async #commitPending(): Promise<void> {
    while (this.#pending.length > 0) {
      const group = this.#pending.splice(0);
      const blocks = group.flatMap(append => append.blocks);
      const encoded = Buffer.concat(blocks.flatMap(({ chunks }) => chunks));
      try {
        const segment = await this.#writableSegment();
        const offset = segment.validBytes;
        await segment.append(blocks, encoded);
        for (const { header, blockBytes } of blocks)
          this.#positions.add(header.kind, blockBytes, segment, offset, toMs(this.#clock()));
        this.#notifyAppend();
        for (const { resolve } of group) resolve(segment.number);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    // There is no await between the last check of #pending and this line, so no append can be missed: a later append finds
    // `undefined` and starts its own commit.
    this.#committing = undefined;
  }

  /** The segments that get no more appends and that the store has applied, the oldest first. */
  #appliedSegments(): SpoolSegment[] {
    return this.#segments.slice(0, -1).filter(segment => !this.#positions.mayHaveUnapplied(segment));
  }

  async #writableSegment(): Promise<SpoolSegment> {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.validBytes < MAX_SEGMENT_BYTES) return last;
    const segment = await createSegment(this.#directory, (last?.number ?? 0) + 1);
    this.#segments.push(segment);
    return segment;
  }
}

/** The kinds of a segment that have a record with the sequence number `upTo(kind)` or a higher one. */
function kindsBeyond(segment: SpoolSegment, upTo: (kind: LogKind) => number): LogKind[] {
  return [...segment.endSequences].filter(([kind, end]) => end > upTo(kind)).map(([kind]) => kind);
}

/** Opens the existing segments, the oldest first. Repairs those that are damaged, and cuts off a torn write at the end. */
async function* openSegments(
  directory: string,
  durableUpTo: (kind: LogKind) => number,
  observe: Observe,
  requestIndex: RememberedRequests | undefined,
): AsyncGenerator<SpoolSegment> {
  const names = listSegments(directory);
  const earlierEnds = new Map<LogKind, number>();
  for (const [index, name] of names.entries()) {
    const path = join(directory, name);
    const number = Number.parseInt(name, 10);
    let { segment, invalidBytes, requests } = await SpoolSegment.open(number, path);
    if (invalidBytes > 0) {
      await segment.close();
      const isLast = index === names.length - 1;
      const completeBytes = isLast ? await readCompleteBytes(directory, name) : Number.POSITIVE_INFINITY;
      const damage = await repairSegment(path, { completeBytes, earlierEnds, durableUpTo });
      ({ segment, invalidBytes, requests } = await SpoolSegment.open(number, path));
      if (damage !== undefined) {
        observe(damage);
        if (isLast) await writeCleanStop(directory, segment); // the segment is shorter now
      }
    }
    yield segment; // before the truncation, so that the caller closes the segment if that fails
    for (const request of requests) requestIndex?.restore(request, number);
    for (const [kind, end] of segment.endSequences) earlierEnds.set(kind, end);
    if (invalidBytes === 0) continue;
    await segment.truncateInvalid();
    observe({ type: 'spool_truncated', path, invalidBytes });
  }
}

/**
 * A process that was killed may not have synced its last block, or the creation of an empty segment. If a sender retries the
 * request of that block, it is recognized as a repeat and acknowledged without a write. So the block has to be durable before the
 * first request is served.
 */
async function syncLast(directory: string, segments: readonly SpoolSegment[]): Promise<void> {
  const last = segments.at(-1);
  if (last === undefined) return;
  if (last.validBytes > 0) await last.sync();
  else await syncDirectory(directory);
}

/**
 * Whether the last segment is shorter than at the last clean stop, so that blocks at its end are missing. If so, updates
 * clean-stop.json, so that the next start does not report them again. Also returns true if `openSegments` has repaired and
 * reported a damaged end but could not update clean-stop.json: `writeCleanStop` ignores errors.
 */
async function isLastSegmentTruncated(
  directory: string,
  segments: readonly SpoolSegment[],
): Promise<boolean> {
  const last = segments.at(-1);
  if (last === undefined || !isTooShort(last.validBytes, await readCompleteBytes(directory))) return false;
  await writeCleanStop(directory, last);
  return true;
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

function toMs(micros: bigint): number {
  return Number(micros / 1000n);
}
