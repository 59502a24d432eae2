// The path of a batch: reserve memory, parse and validate, deduplicate retries, write to the spool, acknowledge. The applier
// then moves the records from the spool to the store.
import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import { Applier } from './applier.ts';
import type { BodyParser } from './body-parser-pool.ts';
import {
  createDeduplicationKey,
  IdempotencyIndex,
  type IdempotencyRecord,
  type IntakeResult,
} from './idempotency-index.ts';
import type { BatchBody, ParsedBody } from './parse-body.ts';
import type { Quarantine } from './quarantine.ts';
import { Spool, spoolDirectoryIn } from './spool.ts';

export interface IntakeOptions {
  readonly dataDirectory: string;
  readonly retentionDays: number;
  /** Maximum of bytes in memory and in the spool that the store has not applied. */
  readonly queueBytes: number;
}

/** The caller closes these after `Intake.close()`. */
export interface IntakeDependencies {
  readonly store: Store;
  readonly quarantine: Quarantine;
  readonly bodyParser: BodyParser;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly observe: Observe;
}

/** A batch from a sender. */
export interface Batch extends Omit<BatchBody, 'rules' | 'needsDeduplication'> {
  /** Identifies the sender. Not a secret. */
  readonly sender: string;
  /** The projects that the sender is limited to. Undefined: all projects. */
  readonly projects?: readonly string[] | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** Applies to bytes in memory, even if `queueBytes` is larger. */
const MAX_BYTES_IN_MEMORY = 64 * 1024 * 1024;

export class Intake {
  readonly #options: IntakeOptions;
  readonly #dependencies: IntakeDependencies;
  readonly #spool: Spool;
  readonly #applier: Applier;
  readonly #idempotency = new IdempotencyIndex();
  #bytesInMemory = 0;

  private constructor(options: IntakeOptions, dependencies: IntakeDependencies, spool: Spool) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#spool = spool;
    this.#applier = new Applier({ ...dependencies, spool });
  }

  /** Resolves when the records that an earlier run left in the spool are visible, or the store could not apply them. */
  static async open(options: IntakeOptions, dependencies: IntakeDependencies): Promise<Intake> {
    const { store, observe } = dependencies;
    const directory = spoolDirectoryIn(options.dataDirectory);
    const { spool, requests } = await Spool.open(directory, kind => store.durableUpTo(kind), observe);
    const intake = new Intake(options, dependencies, spool);
    for (const { key, ...request } of requests) intake.#idempotency.set(key, request);
    await intake.#applier.start();
    return intake;
  }

  /** Bytes in memory and in the spool that the store has not applied. */
  get queuedBytes(): number {
    return this.#bytesInMemory + this.#spool.unappliedBytes;
  }

  /** Bytes of the spool on disk, including records that the store has applied. */
  get spoolBytes(): number {
    return this.#spool.bytes;
  }

  /** Reserves memory for a body before it is read. Returns a function that releases it. Throws `rate_limited`. */
  reserve(bytes: number): () => void {
    const bytesInMemory = this.#bytesInMemory + bytes;
    if (bytesInMemory > MAX_BYTES_IN_MEMORY || this.queuedBytes + bytes > this.#options.queueBytes)
      throw queueFull();
    this.#bytesInMemory = bytesInMemory;
    return () => {
      this.#bytesInMemory -= bytes;
    };
  }

  /** Resolves when the accepted records are durable. If it rejects, nothing was stored. */
  async accept(batch: Batch): Promise<IntakeResult> {
    const { sender, projects, idempotencyKey, ...body } = batch;
    const { bodyParser, clock, observe } = this.#dependencies;
    const nowMicros = Number(clock());
    const rules = { nowMicros, retentionDays: this.#options.retentionDays, projects };
    const parsed = await bodyParser.parse({ ...body, rules, needsDeduplication: true });
    const key = createDeduplicationKey(sender, body.kind, idempotencyKey, parsed);
    const first = key === undefined ? undefined : this.#idempotency.get(key, parsed.digest, nowMicros);
    const result = await (first ?? this.#acceptOnce(body.kind, parsed, key, nowMicros));
    const deduplicated = first !== undefined;
    const rejected = deduplicated ? {} : parsed.rejected;
    observe({ type: 'batch_completed', kind: body.kind, accepted: result.accepted, rejected, deduplicated });
    return result;
  }

  /** Records that the store has not applied stay in the spool for the next start. */
  async close(): Promise<void> {
    await this.#applier.close();
    await this.#spool.close();
  }

  /** A concurrent retry finds the promise in the idempotency index and waits for it. */
  #acceptOnce(
    kind: LogKind,
    parsed: ParsedBody,
    key: string | undefined,
    atMicros: number,
  ): Promise<IntakeResult> {
    const { accepted, digest, errors } = parsed;
    const rejected = Object.values(parsed.rejected).reduce((sum, count) => sum + count, 0);
    const answer = { accepted, rejected, errors };
    const request = key === undefined ? undefined : { key, digest, atMicros, answer };
    const stored = this.#writeToSpool(kind, parsed, request).then(() => {
      if (request !== undefined) this.#idempotency.set(request.key, request);
      this.#dependencies.quarantine.keep(parsed.quarantine);
      return answer;
    });
    if (key !== undefined && accepted > 0) {
      this.#idempotency.set(key, { digest, atMicros, answer: stored });
      stored.catch(() => this.#idempotency.delete(key));
    }
    return stored;
  }

  async #writeToSpool(
    kind: LogKind,
    { accepted, lines }: ParsedBody,
    request?: IdempotencyRecord,
  ): Promise<void> {
    if (accepted === 0) return;
    // Lines of a compressed body are many times its size, and a slow disk would let them accumulate.
    if (this.#bytesInMemory + lines.length > 2 * MAX_BYTES_IN_MEMORY) throw queueFull();
    this.#bytesInMemory += lines.length;
    try {
      await this.#spool.append(kind, accepted, lines, request);
    } catch (error) {
      this.#dependencies.observe({ type: 'spool_write_failed', error });
      throw spoolUnavailable(error);
    } finally {
      this.#bytesInMemory -= lines.length;
    }
  }
}

function queueFull(): DendroError {
  return new DendroError(
    'rate_limited',
    'the intake queue is full; no record of this request was stored, retry later',
  );
}

function spoolUnavailable(error: unknown): DendroError {
  const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC';
  const reason = isFull ? 'the disk is full' : 'writing to the disk failed';
  return new DendroError('unavailable', `${reason}; no record of this request was stored, retry later`, {
    retryAfterSeconds: 5,
  });
}
