// The way of a batch of records: a place for its bytes, read and checked, not stored already, durable in the spool,
// acknowledged. From there folding.ts carries it to the store.

import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { readLogLine } from '../domain/log-line.ts';
import { type Parsed, parseLine } from '../logs/parse.ts';
import { formatQuarantineLine } from '../logs/quarantine-line.ts';
import type { Observe } from '../observe/event.ts';
import type { Store, StoreEvents } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import { Applier } from './applier.ts';
import type { BodyParser } from './body-parser.ts';
import {
  type CompletedRequest,
  createIdempotencyKey,
  IdempotencyIndex,
  type IntakeResult,
} from './idempotency-index.ts';
import type { BatchBody, ParsedBody } from './parse-body.ts';
import { Quarantine } from './quarantine.ts';
import { Spool, spoolDirectoryIn } from './spool.ts';

export interface IntakeOptions {
  readonly dataDirectory: string;
  readonly retentionDays: number;
  /** Bytes that may be on their way: in memory, and on disk before the store has them. */
  readonly queueBytes: number;
}

export interface IntakeDependencies {
  readonly bodyParser: BodyParser;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly observe: Observe;
}

/** A batch as its sender gave it. */
export interface Batch extends Omit<BatchBody, 'rules' | 'isRepeatable'> {
  /** Tells senders apart; not the secret. */
  readonly sender: string;
  /** The projects that the sender is pinned to; none: any. */
  readonly projects?: readonly string[] | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** Bytes in memory at once, whatever may wait on disk. */
const MAX_BYTES_IN_MEMORY = 64 * 1024 * 1024;

export class Intake {
  readonly #options: IntakeOptions;
  readonly #dependencies: IntakeDependencies;
  readonly #idempotency = new IdempotencyIndex();
  readonly #quarantine: Quarantine;
  #spool: Spool | undefined;
  #applier: Applier | undefined;
  #bytesInMemory = 0;

  constructor(options: IntakeOptions, parts: IntakeDependencies) {
    this.#options = options;
    this.#dependencies = parts;
    this.#quarantine = new Quarantine(options.dataDirectory, parts.observe);
  }

  /** What the store tells of its own accord ends up where rejected records do. To be handed to `openStore`. */
  get storeEvents(): StoreEvents {
    return {
      recordRejected: ({ kind, line, reason }) => this.#quarantineRejected(kind, line, reason),
      flushFailed: (kind, error) => this.#dependencies.observe({ type: 'flush_failed', kind, error }),
    };
  }

  /** Takes up what an earlier run left in the spool, and resolves when that can be seen. */
  async open(store: Store): Promise<void> {
    const { clock, timer, observe } = this.#dependencies;
    const folder = spoolDirectoryIn(this.#options.dataDirectory);
    const { spool, requests } = await Spool.open(folder, kind => store.seenUpTo(kind), observe);
    for (const { key, ...request } of requests) this.#idempotency.set(key, request);
    this.#spool = spool;
    this.#applier = new Applier({ spool, store, clock, timer, observe });
    await this.#applier.start();
  }

  /** Bytes that are on their way. */
  get queuedBytes(): number {
    return this.#bytesInMemory + (this.#spool?.unappliedBytes ?? 0);
  }

  /** On disk; what the store keeps is among it for a while. */
  get spoolBytes(): number {
    return this.#spool?.bytes ?? 0;
  }

  /** Takes a place for bytes that are about to be read; call the answer when they are gone. Throws `rate_limited`. */
  reserve(bytes: number): () => void {
    const inMemory = this.#bytesInMemory + bytes;
    if (inMemory > MAX_BYTES_IN_MEMORY || this.queuedBytes + bytes > this.#options.queueBytes)
      throw intakeFull();
    this.#bytesInMemory = inMemory;
    return () => {
      this.#bytesInMemory -= bytes;
    };
  }

  /** Resolves when the accepted records are durable. Rejects where nothing was stored. */
  async ingest(batch: Batch): Promise<IntakeResult> {
    const { sender, projects, idempotencyKey, ...body } = batch;
    const atMicros = Number(this.#dependencies.clock());
    const rules = { nowMicros: atMicros, retentionDays: this.#options.retentionDays, projects };
    const read = await this.#dependencies.bodyParser.parse({ ...body, rules, isRepeatable: true });
    const key = createIdempotencyKey(sender, body.kind, idempotencyKey, read);
    const known = key === undefined ? undefined : this.#idempotency.get(key, read.digest, atMicros);
    const answer = await (known ?? this.#store(body.kind, read, key, atMicros));
    const rejected = known === undefined ? read.rejected : {};
    const [kind, accepted, repeated] = [body.kind, answer.accepted, known !== undefined];
    this.#dependencies.observe({ type: 'batch_received', kind, accepted, rejected, repeated });
    return answer;
  }

  async close(): Promise<void> {
    await this.#applier?.close();
    await this.#spool?.close();
    await this.#quarantine.done();
    await this.#dependencies.bodyParser.close();
  }

  /** A twin that comes while this is under way finds the promise, and waits for it. */
  #store(kind: LogKind, read: ParsedBody, key: string | undefined, atMicros: number): Promise<IntakeResult> {
    const { accepted, digest, errors, quarantine } = read;
    const rejected = Object.values(read.rejected).reduce((sum, count) => sum + count, 0);
    const answer = { accepted, rejected, errors };
    const request = key === undefined ? undefined : { key, digest, atMicros, answer };
    const stored = this.#makeDurable(kind, read, request).then(() => {
      if (request !== undefined) this.#idempotency.set(request.key, request);
      this.#quarantine.keep(quarantine);
      return answer;
    });
    if (key !== undefined && accepted > 0) {
      this.#idempotency.set(key, { digest, atMicros, answer: stored });
      stored.catch(() => this.#idempotency.delete(key));
    }
    return stored;
  }

  async #makeDurable(
    kind: LogKind,
    { accepted, lines }: ParsedBody,
    request?: CompletedRequest,
  ): Promise<void> {
    if (accepted === 0) return;
    // Lines are many times what came, where that was compressed; on a slow disk they would pile up.
    if (this.#bytesInMemory + lines.length > 2 * MAX_BYTES_IN_MEMORY) throw intakeFull();
    this.#bytesInMemory += lines.length;
    try {
      await this.#spool?.append(kind, accepted, lines, request);
    } catch (error) {
      this.#dependencies.observe({ type: 'spool_write_failed', error });
      const reason =
        (error as NodeJS.ErrnoException).code === 'ENOSPC' ? 'the disk is full' : 'the disk refuses it';
      throw new DendroError('unavailable', `${reason}; nothing of this was stored, send it again later`, {
        retryAfterSeconds: 5,
      });
    } finally {
      this.#bytesInMemory -= lines.length;
    }
  }

  #quarantineRejected(kind: LogKind, line: string, reason: string): void {
    const code = 'refused_by_store';
    this.#dependencies.observe({ type: 'record_quarantined', kind, reason });
    const nowMicros = Number(this.#dependencies.clock());
    this.#quarantine.keep(formatQuarantineLine(kind, nowMicros, recordOf(line), { code, message: reason }));
  }
}

function intakeFull(): DendroError {
  return new DendroError('rate_limited', 'the intake is full for the moment; nothing of this was stored');
}

/** The record in a line of the spool, in the form that senders use, so that it can be taken again. */
function recordOf(line: string): Parsed {
  const columns = readLogLine(line);
  const metadata = parseLine(String(columns?.['metadata']), 0);
  if (columns === undefined || 'rejection' in metadata)
    return { index: 0, line, rejection: { code: 'invalid_json', message: '' } };
  const { id, timestamp, project, event_message } = columns as Record<string, unknown>;
  return { index: 0, value: { id, timestamp, project, event_message, metadata: metadata.value } };
}
