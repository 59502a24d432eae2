// The write-ahead log of the intake: records are durable here before they are acknowledged. Group commit: one sync for many
// requests. A segment is deleted when the store has flushed all of its records (`Store.flushedUpTo`). A segment also has the
// idempotency keys and results of its requests; when it is deleted, they move to the idempotency log until they expire.
// spool-state.ts saves the next sequence number of each kind, so that no number is reused after its segment is deleted.
//
// Every sequence number named `end…` or `…UpTo` is exclusive: it is the number after the last record. `durableUpTo` and
// `flushedUpTo` are about the store, not the spool: the interface `Store` defines them (store/store.ts).
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { createDirectory, syncDirectory } from '../system/files.ts';
import type { Idempotency } from './idempotency.ts';
import { encodeBlock, type SpoolAppend, type SpoolBlock } from './spool-block.ts';
import { repairSegment } from './spool-repair.ts';
import { SpoolSegment } from './spool-segment.ts';
import { openSpoolSnapshot, type SpoolSnapshot } from './spool-snapshot.ts';
import {
  findNextSequences,
  formatSequences,
  listSegments,
  readCompleteBytes,
  readSequences,
  type Sequences,
  writeCleanStop,
  writeSequences,
} from './spool-state.ts';

export function spoolDirectoryIn(dataDirectory: string): string {
  return join(dataDirectory, 'spool');
}

/** A segment of this size gets no further appends. */
const MAX_SEGMENT_BYTES = 32 * 1024 * 1024;
/** For the age of the oldest unapplied block: appends within this time count as one. */
const MERGE_MS = 1_000;

export interface SpoolOptions {
  readonly directory: string;
  /** Of the store that will apply the records. */
  readonly durableUpTo: (kind: LogKind) => number;
  readonly observe: Observe;
  /** A caller that omits it must not delete segments: their idempotency keys would be lost. */
  readonly idempotency?: Idempotency | undefined;
  readonly clock?: Clock | undefined;
}

interface PendingAppend {
  readonly appends: readonly SpoolAppend[];
  readonly resolve: (segmentNumber: number) => void;
  readonly reject: (error: unknown) => void;
}

/** A contiguous range of blocks, read in one step. */
export interface SpoolWindow {
  readonly blocks: readonly SpoolBlock[];
  /** Length of these blocks. */
  readonly bytes: number;
  /** Marks the blocks as applied. */
  confirm(): void;
}

export class Spool {
  readonly #options: SpoolOptions;
  readonly #clock: Clock;
  /** The oldest first. Appends go to the last one. At least one, unless the spool is closed. */
  readonly #segments: SpoolSegment[] = [];
  /** Whether files were deleted, and the directory is not synced since. */
  #hasUnsyncedDeletion = false;
  #nextSequences: Sequences = new Map();
  /** When blocks were appended, the oldest first. `end`: the length of all blocks that were appended up to then. */
  readonly #appended: { end: number; readonly atMs: number }[] = [];
  #appendedBytes = 0;
  readonly #pending: PendingAppend[] = [];
  #committing: Promise<void> | undefined;
  #notifyAppend = () => {};
  #closed = false;

  private constructor(options: SpoolOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The caller must hold the lock of the data directory. */
  static async open(options: SpoolOptions): Promise<Spool> {
    const spool = new Spool(options);
    createDirectory(options.directory);
    await options.idempotency?.load(options.observe);
    try {
      await spool.#open();
      return spool;
    } catch (error) {
      for (const segment of spool.#segments) await segment.close();
      throw error;
    }
  }

  async #open(): Promise<void> {
    const { directory, durableUpTo, observe } = this.#options;
    const names = listSegments(directory);
    const completeBytes = await readCompleteBytes(directory);
    let isEndReported = false;
    for (const name of names) {
      const isLast = name === names.at(-1);
      isEndReported = await this.#openSegment(name, isLast ? completeBytes : Number.POSITIVE_INFINITY);
    }
    const last = this.#segments.at(-1);
    const isTooShort = last !== undefined && last.validBytes < completeBytes;
    if (isTooShort) await writeCleanStop(directory, last); // so that the next start does not report it again
    const found = findNextSequences(await readSequences(directory), this.#segments, durableUpTo);
    this.#nextSequences = found.nextSequences;
    const { kindsAhead: kinds, isIncomplete } = found;
    if (isIncomplete || Object.keys(found.lost).length > 0 || (isTooShort && !isEndReported))
      observe({ type: 'spool_incomplete', directory, kinds, lost: found.lost });
    // The next start may use a different store, so save the numbers that only the store had.
    if (kinds.length + Object.keys(found.lost).length > 0)
      await writeSequences(directory, this.#nextSequences);
    // A process that was killed may not have synced its last block, or the creation of an empty segment. If a sender retries the
    // request of that block, it is recognized as a repeat and acknowledged without a write.
    if (last === undefined) await this.#addSegment(1);
    else if (last.validBytes > 0) await last.sync();
    else await syncDirectory(directory);
  }

  /** Repairs a damaged segment, and cuts off a torn write at its end. Returns whether it was damaged. `completeBytes`: RepairContext. */
  async #openSegment(name: string, completeBytes: number): Promise<boolean> {
    const { directory, durableUpTo, observe, idempotency } = this.#options;
    const path = join(directory, name);
    const number = Number.parseInt(name, 10);
    let opened = await SpoolSegment.open(number, path);
    let isDamaged = false;
    if (opened.invalidBytes > 0) {
      await opened.segment.close();
      const earlierEnds = new Map(this.#segments.flatMap(({ endSequences }) => [...endSequences]));
      const damage = await repairSegment(path, { completeBytes, earlierEnds, durableUpTo });
      if (damage !== undefined) observe(damage);
      isDamaged = damage !== undefined;
      opened = await SpoolSegment.open(number, path);
    }
    const { segment, createdAtMs, invalidBytes, requests } = opened;
    this.#segments.push(segment);
    this.#countAppended(segment.validBytes, createdAtMs);
    for (const request of requests) idempotency?.restore(request, number);
    if (invalidBytes === 0) return isDamaged;
    await segment.truncateInvalid();
    observe({ type: 'spool_truncated', path, invalidBytes });
    return isDamaged;
  }

  /** Length of the blocks that the store has not applied. */
  get unappliedBytes(): number {
    return this.#segments.reduce((sum, { validBytes, appliedBytes }) => sum + validBytes - appliedBytes, 0);
  }

  /**
   * The age of the oldest block that the store has not applied, up to MERGE_MS too high; 0 if there is none. A block that an earlier
   * process appended counts as appended when its segment was created.
   */
  get oldestUnappliedAgeMs(): number {
    const appliedBytes = this.#appendedBytes - this.unappliedBytes;
    while (this.#appended[0] !== undefined && this.#appended[0].end <= appliedBytes) this.#appended.shift();
    const [oldest] = this.#appended;
    return oldest === undefined ? 0 : Math.max(0, this.#nowMs() - oldest.atMs);
  }

  /** Length of all segments on disk. */
  get diskBytes(): number {
    return this.#segments.reduce((sum, { validBytes }) => sum + validBytes, 0);
  }

  /**
   * Resolves when the records are durable, with the number of their segment. If it rejects, none of them is stored, except if
   * the failed write could not be cut off and the process ends before the next append (`SpoolSegment.append`). If the process
   * crashes before the promise is settled, the first records may be stored without the others.
   */
  append(appends: readonly SpoolAppend[]): Promise<number> {
    // After close() the list of segments is empty, so a new segment would get the number of an older one.
    if (this.#closed) return Promise.reject(spoolClosed());
    return new Promise((resolve, reject) => {
      this.#pending.push({ appends, resolve, reject });
      this.#committing ??= this.#commitPending();
    });
  }

  /** Resolves after the next append, or when the spool is closed. */
  waitForAppend(): Promise<void> {
    return new Promise(resolve => {
      this.#notifyAppend = resolve;
    });
  }

  /** Reads about `maxBytes` from the first unapplied block. There must be one. Calls must not overlap. */
  async readUnapplied(maxBytes: number): Promise<SpoolWindow> {
    const segment = this.#segments.find(({ validBytes, appliedBytes }) => appliedBytes < validBytes);
    if (segment === undefined) throw new Error('the spool has no unapplied block');
    const { blocks, bytes } = await segment.readUnapplied(maxBytes);
    const confirm = () => {
      segment.appliedBytes += bytes;
    };
    return { blocks, bytes, confirm };
  }

  /** Length of the segments that can be deleted after a flush of the store. */
  unflushedBytes(flushedUpTo: (kind: LogKind) => number): number {
    const unflushed = this.#appliedSegments().filter(segment => !isFlushed(segment, flushedUpTo));
    return unflushed.reduce((sum, { validBytes }) => sum + validBytes, 0);
  }

  /**
   * Deletes the segments in which all records of each kind are before `flushedUpTo(kind)`. A later segment can be deleted
   * before an earlier one that has unflushed records of another kind.
   */
  async deleteFlushed(flushedUpTo: (kind: LogKind) => number): Promise<void> {
    const { directory, idempotency } = this.#options;
    for (const segment of this.#appliedSegments().filter(segment => isFlushed(segment, flushedUpTo))) {
      await idempotency?.keepRequestsOf(segment.number);
      await writeSequences(directory, this.#nextSequences);
      this.#hasUnsyncedDeletion = true;
      await rm(segment.path, { force: true });
      this.#segments.splice(this.#segments.indexOf(segment), 1);
      await segment.close();
    }
    await idempotency?.deleteExpiredFiles();
    if (this.#hasUnsyncedDeletion) await syncDirectory(directory); // after an erasure, a power cut must not bring the files back
    this.#hasUnsyncedDeletion = false;
  }

  /**
   * Starts a new segment, so that the earlier ones can be deleted. They have all records that were durable before the call. Returns
   * the number of the new segment.
   */
  async rotate(): Promise<number> {
    while (this.#committing !== undefined) await this.#committing;
    const last = this.#segments.at(-1);
    if (this.#closed || last === undefined) throw spoolClosed();
    if (last.validBytes === 0) return last.number;
    const created = this.#addSegment(last.number + 1);
    // Appends that arrive meanwhile wait, as they do for a commit.
    this.#committing = created.then(
      () => this.#commitPending(),
      () => this.#commitPending(),
    );
    return (await created).number;
  }

  /** The durable content of the spool at this moment. Synchronous: the caller takes the content of the store at the same moment. */
  snapshot(): SpoolSnapshot {
    const { idempotency } = this.#options;
    return openSpoolSnapshot(
      this.#segments,
      idempotency?.logFiles ?? [],
      formatSequences(this.#nextSequences),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#committing;
    this.#notifyAppend();
    const last = this.#segments.at(-1);
    if (last !== undefined) await writeCleanStop(this.#options.directory, last);
    for (const segment of this.#segments.splice(0)) await segment.close();
  }

  /** Writes all pending appends with one sync. Appends that arrive meanwhile wait for the next sync. */
  async #commitPending(): Promise<void> {
    while (this.#pending.length > 0) {
      const group = this.#pending.splice(0);
      // After a failed write, the next one has the same numbers: a gap would look like missing records.
      const nextSequences = new Map(this.#nextSequences);
      const blocks = group
        .flatMap(({ appends }) => appends)
        .map(append => {
          const firstSequence = nextSequences.get(append.kind) ?? 0;
          nextSequences.set(append.kind, firstSequence + append.count);
          return { ...append, firstSequence };
        });
      try {
        const chunks = blocks.flatMap(block => encodeBlock(block, block.firstSequence));
        const segment = await this.#writableSegment();
        const { validBytes } = segment;
        await segment.append(blocks, chunks);
        this.#nextSequences = nextSequences;
        this.#countAppended(segment.validBytes - validBytes, this.#nowMs());
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

  #countAppended(bytes: number, atMs: number): void {
    this.#appendedBytes += bytes;
    const last = this.#appended.at(-1);
    if (last !== undefined && atMs - last.atMs < MERGE_MS) last.end = this.#appendedBytes;
    else this.#appended.push({ end: this.#appendedBytes, atMs });
  }

  #nowMs(): number {
    return Number(this.#clock() / 1000n);
  }

  /** The segments that get no more appends and that the store has applied, the oldest first. */
  #appliedSegments(): SpoolSegment[] {
    const closed = this.#segments.slice(0, -1);
    return closed.filter(({ validBytes, appliedBytes }) => appliedBytes === validBytes);
  }

  async #writableSegment(): Promise<SpoolSegment> {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.validBytes < MAX_SEGMENT_BYTES) return last;
    return this.#addSegment((last?.number ?? 0) + 1);
  }

  async #addSegment(number: number): Promise<SpoolSegment> {
    const { directory } = this.#options;
    const path = join(directory, `${String(number).padStart(12, '0')}.spool`);
    // What a failed write left there would have the same sequence numbers as the first blocks of the new segment.
    await this.#segments.at(-1)?.cutFailedWrite();
    const segment = await SpoolSegment.create(number, path);
    try {
      await syncDirectory(directory);
    } catch (error) {
      await segment.close();
      throw error;
    }
    this.#segments.push(segment);
    return segment;
  }
}

function isFlushed({ endSequences }: SpoolSegment, flushedUpTo: (kind: LogKind) => number): boolean {
  return [...endSequences].every(([kind, end]) => end <= flushedUpTo(kind));
}

function spoolClosed(): Error {
  return new Error('the spool is closed');
}
