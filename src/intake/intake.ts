// Accepts requests with log records: reserves memory, parses and validates, recognizes repeats, writes to the spool, then
// acknowledges. The applier passes the records from the spool to the store in the background.
import { DendroError } from '../domain/errors.ts';
import { MAX_METRIC_PROJECTS } from '../domain/limits.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { EraseScope, Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { isDiskFull } from '../system/disk-full.ts';
import { MemoryShares } from '../system/memory-shares.ts';
import type { Timer } from '../system/timer.ts';
import { Applier } from './applier.ts';
import type { BodyParser } from './body-parser-pool.ts';
import type { IntakeResult } from './completed-request.ts';
import { type ClaimedBatch, Idempotency } from './idempotency.ts';
import type { EncodedBody, ParsedBody, ProjectCounts, RequestCount } from './parse-body.ts';
import type { Quarantine } from './quarantine.ts';
import { Spool, spoolDirectoryIn } from './spool.ts';
import type { SpoolSnapshot } from './spool-snapshot.ts';

export interface IntakeOptions {
  readonly dataDirectory: string;
  readonly retentionDays: number;
  /**
   * A body is rejected if `Intake.queuedBytes` would exceed this limit while the body is read. The log lines of a body that was
   * read can still exceed it: only LINES_MEMORY_LIMIT limits them.
   */
  readonly queueBytes: number;
  /** Maximum memory of the remembered requests. */
  readonly idempotencyBytes: number;
  /** Whether to count the requests of each project, for metrics. */
  readonly projectMetrics?: boolean;
}

/** The caller closes these after `Intake.close()`. */
export interface IntakeDependencies {
  readonly store: Store;
  readonly quarantine: Quarantine;
  readonly bodyParser: BodyParser;
  readonly clock: Clock;
  readonly timer: Timer;
  /** Measures the age of remembered requests. The same as `timer`, except in tests. */
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
  /** Aborts when the sender disconnects. A body that waits to be parsed is then dropped. */
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
  /** Throws `rate_limited` if the sender holds too much, or if the queue is full or takes the store too long. */
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

/**
 * Acknowledged records must be visible within 2 s. So received bodies wait while the store will take longer than MAX_WAIT_MS for the
 * records in the spool. While it will take longer than MAX_DELAY_MS, bodies are refused.
 */
const MAX_WAIT_MS = 1_000;
const MAX_DELAY_MS = 10_000;

export class Intake {
  readonly #options: IntakeOptions;
  readonly #dependencies: IntakeDependencies;
  readonly #idempotency: Idempotency;
  readonly #spool: Spool;
  readonly #applier: Applier;
  readonly #bodyMemory: MemoryShares;
  readonly #linesMemory = new MemoryShares(LINES_MEMORY_LIMIT);
  /** The projects that have series of their own in the metrics. */
  readonly #countedProjects = new Set<string>();

  private constructor(
    options: IntakeOptions,
    dependencies: IntakeDependencies,
    idempotency: Idempotency,
    spool: Spool,
  ) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#idempotency = idempotency;
    this.#spool = spool;
    this.#bodyMemory = new MemoryShares(Math.min(BODY_MEMORY_LIMIT, options.queueBytes));
    this.#applier = new Applier({ ...dependencies, spool });
  }

  /** Applies the records that an earlier run left in the spool. If the store fails, resolves anyway and retries later. */
  static async open(options: IntakeOptions, dependencies: IntakeDependencies): Promise<Intake> {
    const { store, clock, idempotencyTimer: timer, observe } = dependencies;
    const directory = spoolDirectoryIn(options.dataDirectory);
    const idempotency = new Idempotency({ directory, maxBytes: options.idempotencyBytes, clock, timer });
    const durableUpTo = (kind: LogKind) => store.durableUpTo(kind);
    const spool = await Spool.open({ directory, durableUpTo, observe, idempotency, clock });
    const intake = new Intake(options, dependencies, idempotency, spool);
    await intake.#applier.start();
    await idempotency.deleteUndelivered(); // not earlier: the process may be stopped while it applies the spool
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
        if (this.#applier.waitMs > MAX_DELAY_MS) throw queueFull();
        if (!this.#bodyMemory.tryReserve(sender, byteLength)) throw shareExceeded();
        reservedBytes += byteLength;
      },
      release: () => this.#bodyMemory.release(sender, reservedBytes),
    };
  }

  /** Resolves when the accepted records are durable. If it rejects, no record was stored (one exception: `Spool.append`). */
  async accept(request: IntakeRequest): Promise<AcceptedRequest> {
    const { sender, projects, idempotencyKey: _, signal, ...body } = request; // `body` has only what the parser needs
    const { bodyParser, clock } = this.#dependencies;
    const nowMicros = Number(clock());
    const bodyBytes = body.data.length; // the parser takes the buffer, which is then empty
    const context = { nowMicros, retentionDays: this.#options.retentionDays, projects };
    const parsed = await bodyParser.parse(
      { ...body, context, needsDeduplication: true, countsProjects: this.#options.projectMetrics === true },
      { sender, isPaused: () => this.#applier.waitMs > MAX_WAIT_MS, ...(signal && { signal }) },
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
    const claim = await this.#idempotency.claim(request, parsed, nowMicros);
    try {
      claim.stored(await this.#store(claim.batches.filter(({ isRepeat }) => !isRepeat)));
    } catch (error) {
      claim.end(false);
      throw error;
    }
    for (const [index, batch] of claim.batches.entries())
      this.#dependencies.observe({
        type: 'batch_completed',
        kind: batch.kind ?? 'unknown',
        bytes: index === 0 ? bodyBytes : 0, // the body counts once, not for each kind
        accepted: batch.isRepeat ? batch.result.accepted : batch.accepted,
        rejected: batch.isRepeat ? {} : batch.rejectedByCode,
        deduplicated: batch.isRepeat,
        byProject: batch.isRepeat ? [] : this.#limitProjects(batch.byProject),
      });
    return { result: claim.result, reportDelivery: claim.awaitsDelivery ? claim.end : undefined };
  }

  /** Projects beyond the limit, and those whose name cannot be a label, count as one without a name. */
  #limitProjects(byProject: ProjectCounts = new Map()): [project: string, RequestCount][] {
    return [...byProject].map(([project, count]) => {
      if (this.#countedProjects.size < MAX_METRIC_PROJECTS && LABEL.test(project))
        this.#countedProjects.add(project);
      return [this.#countedProjects.has(project) ? project : '', count];
    });
  }

  /**
   * Moves all records that were acknowledged before the call from the spool to the store's tables (`Applier.drain`), for an erasure
   * that follows. From then on, repeats of these requests store the records in its scope again.
   */
  async prepareErasure(scope: EraseScope): Promise<void> {
    await this.#idempotency.addErasure(scope, await this.#applier.drain());
  }

  /** The durable content of the spool at this moment, for a backup. */
  snapshotSpool(): SpoolSnapshot {
    return this.#spool.snapshot();
  }

  /** Records that the store has not applied stay in the spool for the next start. */
  async close(): Promise<void> {
    await this.#applier.close();
    await this.#spool.close();
    await this.#idempotency.writeUndelivered();
  }

  /**
   * Writes the accepted records to the spool, and the rejected ones to the quarantine. Returns the number of the spool segment; 0
   * if no record was accepted.
   */
  async #store(batches: readonly ClaimedBatch[]): Promise<number> {
    const appends = batches.flatMap(({ kind, accepted: count, lines, request }) =>
      kind === undefined || count === 0 ? [] : { kind, count, lines, request },
    );
    const { quarantine, observe } = this.#dependencies;
    try {
      const segmentNumber = appends.length === 0 ? 0 : await this.#spool.append(appends);
      quarantine.append(batches.map(({ quarantineLines }) => quarantineLines).join(''));
      return segmentNumber;
    } catch (error) {
      observe({ type: 'spool_write_failed', error });
      throw spoolUnavailable(error);
    }
  }
}

/** A project that can be a label: the text format of Prometheus has no escapes for control characters. */
const LABEL = /^\P{Cc}{1,128}$/u;

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

function spoolUnavailable(error: unknown): DendroError {
  const reason = isDiskFull(error) ? 'the disk is full' : 'writing to the disk failed';
  return new DendroError('unavailable', `${reason}; no record of this request was stored, retry later`, {
    retryAfterSeconds: 5,
  });
}
