// Accepts requests with log records: reserves memory, parses and validates, recognizes repeats, writes to the spool, then
// acknowledges. The applier passes the records from the spool to the store in the background.
import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { isDiskFull } from '../system/disk-full.ts';
import { MemoryShares } from '../system/memory-shares.ts';
import type { Timer } from '../system/timer.ts';
import { Applier } from './applier.ts';
import type { BodyParser } from './body-parser-pool.ts';
import { type ClaimedBatch, claimBatches, mergeResults, release } from './claimed-batches.ts';
import { IdempotencyIndex, type IndexEntry, type IntakeResult } from './idempotency-index.ts';
import {
  deleteUndelivered,
  type RememberedRequests,
  readUndelivered,
  writeUndelivered,
} from './idempotency-log.ts';
import type { EncodedBody, ParsedBody } from './parse-body.ts';
import type { Quarantine } from './quarantine.ts';
import { Spool, type SpoolAppend, spoolDirectoryIn } from './spool.ts';
import type { SpoolSnapshot } from './spool-snapshot.ts';

export interface IntakeOptions {
  readonly dataDirectory: string;
  readonly retentionDays: number;
  /**
   * A body is rejected if `Intake.queuedBytes` would exceed this limit while the body is read. The log lines of a body that was
   * read can still exceed it: only LINES_MEMORY_LIMIT limits them.
   */
  readonly queueBytes: number;
  /** Maximum memory of the idempotency index. */
  readonly idempotencyBytes: number;
}

/** The caller closes these after `Intake.close()`. */
export interface IntakeDependencies {
  readonly store: Store;
  readonly quarantine: Quarantine;
  readonly bodyParser: BodyParser;
  readonly clock: Clock;
  readonly timer: Timer;
  /** Measures the age of requests for the idempotency index. The same as `timer`, except in tests. */
  readonly idempotencyTimer: Pick<Timer, 'now'>;
  readonly observe: Observe;
}

/** A request from a sender (a log shipper). Its body can have records of several kinds. */
export interface IntakeRequest extends Omit<EncodedBody, 'context' | 'needsDeduplication'> {
  /** Identifies the sender: the hash of its secret, which is safe to store. */
  readonly sender: string;
  /** The projects that the sender is pinned to. Undefined: all projects. */
  readonly projects?: readonly string[] | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Aborts when the sender disconnects. A body that is not parsed yet is then dropped. */
  readonly signal?: AbortSignal;
}

export interface AcceptedRequest {
  readonly result: IntakeResult;
  /**
   * If given, the caller must call it once. `isDelivered`: the response was completely written to its connection. Until the call,
   * requests with the same body wait.
   */
  readonly reportDelivery: ((isDelivered: boolean) => void) | undefined;
}

/** Counts the memory of one body while it is read, and until its request is completed. */
export interface BodyMemory {
  /** Throws `rate_limited` if the sender holds too much, or if the queue is full. */
  readonly reserve: (byteLength: number) => void;
  readonly release: () => void;
}

/**
 * The limit for the bodies in memory, of all senders together. One sender gets at most half of it, which is two bodies of the
 * maximum size.
 */
const BODY_MEMORY_LIMIT = 64 * 1024 * 1024;
/**
 * The limit for the log lines and quarantine lines in memory, of all senders together. They accumulate while the disk is slow.
 * Higher than the limit for bodies, because the lines of a compressed body can be many times as large as the body. Half of this
 * limit, the most one sender gets, holds the lines of almost any body.
 */
const LINES_MEMORY_LIMIT = 3 * BODY_MEMORY_LIMIT;

export class Intake {
  readonly #options: IntakeOptions;
  readonly #dependencies: IntakeDependencies;
  readonly #spool: Spool;
  readonly #applier: Applier;
  readonly #idempotency: IdempotencyIndex;
  readonly #bodyMemory: MemoryShares;
  readonly #linesMemory = new MemoryShares(LINES_MEMORY_LIMIT);

  private constructor(
    options: IntakeOptions,
    dependencies: IntakeDependencies,
    spool: Spool,
    idempotency: IdempotencyIndex,
  ) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#spool = spool;
    this.#idempotency = idempotency;
    this.#bodyMemory = new MemoryShares(Math.min(BODY_MEMORY_LIMIT, options.queueBytes));
    this.#applier = new Applier({ ...dependencies, spool });
  }

  /** Applies the records that an earlier run left in the spool. If the store fails, resolves anyway and retries later. */
  static async open(options: IntakeOptions, dependencies: IntakeDependencies): Promise<Intake> {
    const { store, clock, idempotencyTimer: timer, observe } = dependencies;
    const directory = spoolDirectoryIn(options.dataDirectory);
    const index = new IdempotencyIndex({ maxBytes: options.idempotencyBytes, clock, timer });
    const requests = {
      index: withoutDelivered(index, await readUndelivered(directory)),
      nowMs: () => timer.now(),
    };
    const spool = await Spool.open(directory, kind => store.durableUpTo(kind), observe, requests, clock);
    await deleteUndelivered(directory);
    const intake = new Intake(options, dependencies, spool, index);
    await intake.#applier.start();
    return intake;
  }

  /** Bytes in memory and bytes in the spool that the store has not applied. */
  get queuedBytes(): number {
    return this.#bodyMemory.held + this.#linesMemory.held + this.#spool.unappliedBytes;
  }

  /** Bytes of the spool on disk, including blocks that the store has applied. */
  get spoolBytes(): number {
    return this.#spool.diskBytes;
  }

  /** Age of the oldest record in the spool that the store has not applied; 0 if there is none. */
  get oldestUnappliedAgeMs(): number {
    return this.#spool.oldestUnappliedAgeMs;
  }

  /** The caller reserves memory as the body arrives, and releases all of it when the request is completed. */
  openBodyMemory(sender: string): BodyMemory {
    let reservedBytes = 0;
    return {
      reserve: byteLength => {
        if (this.queuedBytes + byteLength > this.#options.queueBytes) throw queueFull();
        if (!this.#bodyMemory.tryReserve(sender, byteLength)) throw shareExceeded();
        reservedBytes += byteLength;
      },
      release: () => this.#bodyMemory.release(sender, reservedBytes),
    };
  }

  /** Resolves when the accepted records are durable. If it rejects, no record was stored (one exception: `Spool.appendAll`). */
  async accept(request: IntakeRequest): Promise<AcceptedRequest> {
    const { sender, projects, idempotencyKey: _, signal, ...body } = request; // `body` has only what the parser needs
    const { bodyParser, clock } = this.#dependencies;
    const nowMicros = Number(clock());
    const bodyBytes = body.data.length; // the parser takes the buffer, which is then empty
    const context = { nowMicros, retentionDays: this.#options.retentionDays, projects };
    const parsed = await bodyParser.parse(
      { ...body, context, needsDeduplication: true },
      { sender, ...(signal && { signal }) },
    );
    const parsedBytes = parsed.batches.reduce(
      (sum, { lines, quarantineLines }) => sum + lines.length + quarantineLines.length,
      0,
    );
    if (!this.#linesMemory.tryReserve(sender, parsedBytes)) throw shareExceeded();
    try {
      return await this.#acceptParsed(request, bodyBytes, parsed, nowMicros);
    } finally {
      this.#linesMemory.release(sender, parsedBytes);
    }
  }

  async #acceptParsed(
    request: IntakeRequest,
    bodyBytes: number,
    parsed: ParsedBody,
    nowMicros: number,
  ): Promise<AcceptedRequest> {
    const claimed = await claimBatches(this.#idempotency, request, parsed, nowMicros);
    const entries = await this.#spoolNewBatches(claimed);
    for (const [index, batch] of claimed.entries()) {
      this.#dependencies.observe({
        type: 'batch_completed',
        kind: batch.kind ?? 'unknown',
        bytes: index === 0 ? bodyBytes : 0, // the body counts once, not for each kind
        accepted: batch.result.accepted,
        rejected: batch.isRepeat ? {} : batch.rejectedByCode,
        deduplicated: batch.isRepeat,
      });
    }
    const result = mergeResults(claimed.map(batch => batch.result));
    // For these, a later request with the same body is a repeat only if this response is not delivered (idempotency-index.ts).
    const awaitingDelivery = entries.filter(({ forgetOnceDelivered }) => forgetOnceDelivered);
    if (awaitingDelivery.length === 0) return { result, reportDelivery: undefined };
    const reportDelivery = (isDelivered: boolean) => {
      for (const entry of awaitingDelivery) this.#idempotency.reportDelivery(entry, isDelivered);
    };
    return { result, reportDelivery };
  }

  /**
   * Moves all records that were acknowledged before the call from the spool to the store's tables. Waits and throws as
   * `Applier.drain` does.
   */
  drain(): Promise<void> {
    return this.#applier.drain();
  }

  /** The durable content of the spool at this moment, for a backup. */
  snapshotSpool(): SpoolSnapshot {
    return this.#spool.snapshot();
  }

  /** Records that the store has not applied stay in the spool for the next start. */
  async close(): Promise<void> {
    await this.#applier.close();
    await this.#spool.close();
    await writeUndelivered(
      spoolDirectoryIn(this.#options.dataDirectory),
      this.#idempotency.undeliveredKeys(),
    );
  }

  /**
   * Writes the batches that are not repeats to the spool, and their rejected records to the quarantine. Returns the index
   * entries of all batches that have one, repeats included.
   */
  async #spoolNewBatches(claimed: readonly ClaimedBatch[]): Promise<IndexEntry[]> {
    const newBatches = claimed.filter(({ isRepeat }) => !isRepeat);
    try {
      const segmentNumber = await this.#writeToSpool(newBatches);
      this.#dependencies.quarantine.append(newBatches.map(({ quarantineLines }) => quarantineLines).join(''));
      return claimed.flatMap(({ entry, isRepeat, result }) => {
        if (entry === undefined) return [];
        return isRepeat ? entry : this.#idempotency.complete(entry, result, segmentNumber);
      });
    } catch (error) {
      release(this.#idempotency, claimed);
      throw error;
    }
  }

  /** Returns the number of the spool segment; 0 if there is nothing to write. */
  async #writeToSpool(batches: readonly ClaimedBatch[]): Promise<number> {
    const appends = batches.flatMap(toAppend);
    if (appends.length === 0) return 0;
    for (const { kind } of appends)
      if (!this.#applier.hasSpaceFor(kind, this.#options.queueBytes)) throw tooManyWaiting(kind);
    try {
      return await this.#spool.appendAll(appends);
    } catch (error) {
      this.#dependencies.observe({ type: 'spool_write_failed', error });
      throw spoolUnavailable(error);
    }
  }
}

function toAppend({ kind, accepted, lines, entry, result }: ClaimedBatch): SpoolAppend[] {
  if (kind === undefined || accepted === 0) return [];
  return [{ kind, count: accepted, lines, request: entry && { ...entry, result } }];
}

/**
 * Wraps the index while the server starts. `restore` skips requests that can no longer have a repeat: those with
 * `forgetOnceDelivered` whose response was delivered.
 *
 * `undelivered` comes from the last clean stop. It has the keys of those requests with `forgetOnceDelivered` whose response was
 * not delivered, or may not have been. Undefined: there was no clean stop, so all requests are restored.
 */
function withoutDelivered(
  index: IdempotencyIndex,
  undelivered: ReadonlySet<string> | undefined,
): RememberedRequests {
  return {
    restore(request, segmentNumber) {
      const isDelivered = request.forgetOnceDelivered && undelivered?.has(request.key) === false;
      if (!isDelivered) index.restore(request, segmentNumber);
    },
    requestsOf: segmentNumber => index.requestsOf(segmentNumber),
  };
}

function queueFull(): DendroError {
  return new DendroError(
    'rate_limited',
    'the intake queue is full; no record of this request was stored, retry later',
  );
}

function shareExceeded(): DendroError {
  return new DendroError(
    'rate_limited',
    'the requests of this token have used up their share of the memory; no record of this request was stored, retry later',
  );
}

function tooManyWaiting(kind: LogKind): DendroError {
  return new DendroError(
    'rate_limited',
    `the store fails to apply records of kind ${kind}, and too many records are waiting; no record of this request was stored, retry later`,
  );
}

function spoolUnavailable(error: unknown): DendroError {
  const reason = isDiskFull(error) ? 'the disk is full' : 'writing to the disk failed';
  return new DendroError('unavailable', `${reason}; no record of this request was stored, retry later`, {
    retryAfterSeconds: 5,
  });
}
