// The way of a batch of records: a place for its bytes, read and checked, not stored already, durable in the spool,
// acknowledged. From there folding.ts carries it to the store.
import type { Clock } from '../clock.ts';
import { DendroError } from '../errors.ts';
import { readLogLine } from '../log-line.ts';
import type { LogKind } from '../log-record.ts';
import { type Parsed, parseLine } from '../logs/parse.ts';
import { quarantineLine } from '../logs/quarantine-line.ts';
import type { Observe } from '../observe/event.ts';
import type { Store, StoreWatch } from '../store/store.ts';
import type { Timer } from '../timer.ts';
import type { BodyReader } from './body-threads.ts';
import { Folding } from './folding.ts';
import { type IntakeAnswer, type KnownRequest, KnownRequests, requestKey } from './known-requests.ts';
import { Quarantine } from './quarantine.ts';
import type { Body, ReadBody } from './read-body.ts';
import { Spool, spoolFolderIn } from './spool.ts';

export interface IntakeOptions {
  readonly dataFolder: string;
  readonly retentionDays: number;
  /** Bytes that may be on their way: in memory, and on disk before the store has them. */
  readonly queueBytes: number;
}

export interface IntakeParts {
  readonly bodies: BodyReader;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly observe: Observe;
}

/** A batch as its sender gave it. */
export interface Batch extends Omit<Body, 'door' | 'isRepeatable'> {
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
  readonly #parts: IntakeParts;
  readonly #known = new KnownRequests();
  readonly #quarantine: Quarantine;
  #spool: Spool | undefined;
  #folding: Folding | undefined;
  #bytesInMemory = 0;

  constructor(options: IntakeOptions, parts: IntakeParts) {
    this.#options = options;
    this.#parts = parts;
    this.#quarantine = new Quarantine(options.dataFolder, parts.observe);
  }

  /** What the store tells of its own accord ends up where rejected records do. To be handed to `openStore`. */
  get storeWatch(): StoreWatch {
    return {
      refused: ({ kind, line, reason }) => this.#setAside(kind, line, reason),
      sealFailed: (kind, error) => this.#parts.observe({ type: 'seal_failed', kind, error }),
    };
  }

  /** Takes up what an earlier run left in the spool, and resolves when that can be seen. */
  async open(store: Store): Promise<void> {
    const { clock, timer, observe } = this.#parts;
    const folder = spoolFolderIn(this.#options.dataFolder);
    const { spool, requests } = await Spool.open(folder, kind => store.reached(kind), observe);
    for (const { key, ...request } of requests) this.#known.note(key, request);
    this.#spool = spool;
    this.#folding = new Folding({ spool, store, clock, timer, observe });
    await this.#folding.start();
  }

  /** Bytes that are on their way. */
  get queuedBytes(): number {
    return this.#bytesInMemory + (this.#spool?.unreadBytes ?? 0);
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
  async take(batch: Batch): Promise<IntakeAnswer> {
    const { sender, projects, idempotencyKey, ...body } = batch;
    const atMicros = Number(this.#parts.clock());
    const door = { nowMicros: atMicros, retentionDays: this.#options.retentionDays, projects };
    const read = await this.#parts.bodies.read({ ...body, door, isRepeatable: true });
    const key = requestKey(sender, body.kind, idempotencyKey, read);
    const known = key === undefined ? undefined : this.#known.find(key, read.digest, atMicros);
    const answer = await (known ?? this.#store(body.kind, read, key, atMicros));
    const rejected = known === undefined ? read.rejected : {};
    const [kind, accepted, again] = [body.kind, answer.accepted, known !== undefined];
    this.#parts.observe({ type: 'records_taken', kind, accepted, rejected, again });
    return answer;
  }

  async close(): Promise<void> {
    await this.#folding?.close();
    await this.#spool?.close();
    await this.#quarantine.done();
    await this.#parts.bodies.close();
  }

  /** A twin that comes while this is under way finds the promise, and waits for it. */
  #store(kind: LogKind, read: ReadBody, key: string | undefined, atMicros: number): Promise<IntakeAnswer> {
    const { accepted, digest, errors, quarantine } = read;
    const rejected = Object.values(read.rejected).reduce((sum, count) => sum + count, 0);
    const answer = { accepted, rejected, errors };
    const request = key === undefined ? undefined : { key, digest, atMicros, answer };
    const stored = this.#makeDurable(kind, read, request).then(() => {
      if (request !== undefined) this.#known.note(request.key, request);
      this.#quarantine.keep(quarantine);
      return answer;
    });
    if (key !== undefined && accepted > 0) {
      this.#known.note(key, { digest, atMicros, answer: stored });
      stored.catch(() => this.#known.forget(key));
    }
    return stored;
  }

  async #makeDurable(kind: LogKind, { accepted, lines }: ReadBody, request?: KnownRequest): Promise<void> {
    if (accepted === 0) return;
    // Lines are many times what came, where that was packed; on a slow disk they would pile up.
    if (this.#bytesInMemory + lines.length > 2 * MAX_BYTES_IN_MEMORY) throw intakeFull();
    this.#bytesInMemory += lines.length;
    try {
      await this.#spool?.append(kind, accepted, lines, request);
    } catch (error) {
      this.#parts.observe({ type: 'spool_failed', error });
      const reason =
        (error as NodeJS.ErrnoException).code === 'ENOSPC' ? 'the disk is full' : 'the disk refuses it';
      throw new DendroError('unavailable', `${reason}; nothing of this was stored, send it again later`, {
        retryAfterSeconds: 5,
      });
    } finally {
      this.#bytesInMemory -= lines.length;
    }
  }

  #setAside(kind: LogKind, line: string, reason: string): void {
    const code = 'refused_by_store';
    this.#parts.observe({ type: 'record_refused', kind, reason });
    const nowMicros = Number(this.#parts.clock());
    this.#quarantine.keep(quarantineLine(kind, nowMicros, recordOf(line), { code, message: reason }));
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
