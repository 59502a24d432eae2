// Index of the requests of the last ten minutes: a repeat gets the result of the first request and is not stored again. In
// memory only. After a restart it is rebuilt from the spool and the idempotency log.
import { hash } from 'node:crypto';
import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { Clock } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import type { EncodedBody, ParsedBatch, ParsedBody, RecordError } from './parse-body.ts';

export interface IntakeResult {
  readonly accepted: number;
  readonly rejected: number;
  /** Errors of the first rejected records. A remembered result has only the first of them (`toRemembered`). */
  readonly errors: readonly RecordError[];
}

/** What the identity of a request depends on, besides its records. For OTLP, `kind` has the rules for the kind of each record. */
export interface RequestOrigin extends Pick<EncodedBody, 'kind'> {
  readonly sender: string;
  readonly idempotencyKey?: string | undefined;
}

/** What makes a request recognizable as a repeat of an earlier one. */
export interface RequestIdentity {
  /**
   * A hash of the sender, the kind, and either the Idempotency-Key header or the digest of the body; for OTLP, also of the source
   * that the request names.
   */
  readonly key: string;
  /** SHA-256 of the decompressed body. */
  readonly digest: string;
  /**
   * The request has no Idempotency-Key, and some record has no identity (`hasIdentity` in logs/record.ts). The same body is
   * then a repeat only if the response to the first request was not completely written to its connection.
   */
  readonly forgetOnceDelivered: boolean;
}

/** A completed request, as the spool and the idempotency log keep it on disk (idempotency-log.ts has the format). */
export interface CompletedRequest extends RequestIdentity {
  /** Time of arrival, Unix microseconds. */
  readonly atMicros: number;
  readonly result: IntakeResult;
}

/** A request in the index. */
export interface IndexEntry extends RequestIdentity {
  readonly atMicros: number;
  /** When it was added, on the monotonic clock: a step of the wall clock must not change its age. */
  readonly addedMs: number;
  /** Undefined until the records are durable. */
  readonly result: IntakeResult | undefined;
  /** The spool segment to which the request was written. The segment may have been deleted since. 0: none. */
  readonly segmentNumber: number;
  /** Estimated memory. */
  readonly bytes: number;
  /** Resolves when it is known whether a second request is a repeat. Undefined: it is known. */
  pending: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
}

export interface IndexOptions {
  /** If the entries take more memory, the oldest ones are evicted before they expire. */
  readonly maxBytes: number;
  /** The monotonic clock. */
  readonly timer: Pick<Timer, 'now'>;
  /** The wall clock, which the times on disk refer to. */
  readonly clock: Clock;
}

/** A request expires after this time. */
export const TTL_MS = 600_000;
/** Measured: an entry without errors, with its strings and its place in the map. */
const ENTRY_BYTES = 512;
/** How often expired entries are evicted. */
const EVICTION_INTERVAL_MS = 1_000;
/** If the index exceeds `maxBytes`, the oldest entries are evicted until the others take this share of it. */
const EVICTION_TARGET = 0.95;
const NO_ERRORS: readonly RecordError[] = [];

/**
 * Identifies the records of one kind. Returns undefined if no record was accepted and there is no Idempotency-Key: a retry then
 * cannot store anything twice.
 */
export function identifyRequest(
  { sender, idempotencyKey, kind: kindOrRules }: RequestOrigin,
  kind: LogKind,
  {
    digest,
    allHaveIdentity,
    accepted,
  }: Pick<ParsedBody, 'digest' | 'allHaveIdentity'> & Pick<ParsedBatch, 'accepted'>,
): RequestIdentity | undefined {
  if (idempotencyKey === undefined && accepted === 0) return undefined;
  const identity = idempotencyKey === undefined ? ['body', digest] : ['key', idempotencyKey];
  // The source that an OTLP request names decides which records of the body have this kind.
  const source = typeof kindOrRules === 'string' ? [] : [kindOrRules.sourceName ?? null];
  const parts = [sender, kind, ...identity, ...source];
  const key = hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 32);
  return { key, digest, forgetOnceDelivered: idempotencyKey === undefined && !allHaveIdentity };
}

/** The part of a result that is remembered: 20 error messages of every request would fill the memory. */
export function toRemembered({ accepted, rejected, errors }: IntakeResult): IntakeResult {
  return { accepted, rejected, errors: errors.length === 0 ? NO_ERRORS : errors.slice(0, 1) };
}

export class IdempotencyIndex {
  readonly #options: IndexOptions;
  /** The oldest first. */
  readonly #entries = new Map<string, IndexEntry>();
  #bytes = 0;
  #nextEvictionMs = 0;

  constructor(options: IndexOptions) {
    this.#options = options;
  }

  /** Estimated memory of all entries. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Returns the entry of the first request with this key, if its records are durable: the caller's request is a repeat. If the
   * entry has `forgetOnceDelivered`, the caller must call `reportDelivery`, or `release` if its request fails; until then,
   * further equal requests wait.
   *
   * If there is no first request, adds and returns an entry without a result. The caller must call `complete`, or `release` if
   * its request fails. After `complete`, an entry with `forgetOnceDelivered` also needs `reportDelivery`.
   *
   * Waits while the first request is in flight. Throws `idempotency_conflict` if the first request had a different body.
   */
  async claim(identity: RequestIdentity, atMicros: number): Promise<IndexEntry> {
    for (;;) {
      const entry = this.#find(identity);
      if (entry?.pending !== undefined) {
        await entry.pending.promise;
        continue;
      }
      if (entry === undefined) {
        const added = this.#createEntry(identity, atMicros, undefined, 0);
        added.pending = createPending();
        return this.#put(added);
      }
      if (entry.forgetOnceDelivered) entry.pending = createPending();
      return entry;
    }
  }

  /** Call it when the records are durable. A repeat gets this result. Returns the entry that replaces the claimed one. */
  complete(entry: IndexEntry, result: IntakeResult, segmentNumber: number): IndexEntry {
    const completed = this.#createEntry(entry, entry.atMicros, toRemembered(result), segmentNumber);
    completed.pending = entry.pending;
    this.#put(completed);
    if (!entry.forgetOnceDelivered) resolvePending(completed);
    return completed;
  }

  /** Removes the entry, because its request failed or its response was delivered: the next request with this key is a new one. */
  remove(entry: IndexEntry): void {
    if (this.#entries.get(entry.key) === entry) this.#delete(entry);
    resolvePending(entry);
  }

  /** Call it if the request of a claimed entry failed. Removes the entry of a first request. A repeat stays a repeat. */
  release(entry: IndexEntry): void {
    if (entry.result === undefined) this.remove(entry);
    else resolvePending(entry);
  }

  /**
   * Must be called after each response to a request with `forgetOnceDelivered`; until then, requests with the same body
   * wait. If the client got the response, the next request with the same body is a new one.
   */
  reportDelivery(entry: IndexEntry, isDelivered: boolean): void {
    if (isDelivered) this.remove(entry);
    else resolvePending(entry);
  }

  /** Adds a request from the disk, unless it has expired. If its time is in the future, the clock was set back: its age is 0. */
  restore(request: CompletedRequest, segmentNumber: number): void {
    const { clock } = this.#options;
    const ageMs = Math.max(0, (Number(clock()) - request.atMicros) / 1000);
    if (ageMs >= TTL_MS) return;
    const result = toRemembered(request.result);
    this.#put(this.#createEntry(request, request.atMicros, result, segmentNumber, ageMs));
  }

  /** The requests of a segment that have not expired. */
  requestsOf(segmentNumber: number): readonly CompletedRequest[] {
    const requests: CompletedRequest[] = [];
    for (const entry of this.#entries.values()) {
      const { result } = entry;
      if (entry.segmentNumber !== segmentNumber || result === undefined || this.#hasExpired(entry)) continue;
      requests.push({ ...entry, result });
    }
    return requests;
  }

  /**
   * The keys of the requests with `forgetOnceDelivered` in the index: their response was not delivered, or that is not
   * known.
   */
  undeliveredKeys(): readonly string[] {
    return [...this.#entries.values()].filter(entry => entry.forgetOnceDelivered).map(({ key }) => key);
  }

  /** Lists the properties one by one, because spreading objects takes several times as long. */
  #createEntry(
    { key, digest, forgetOnceDelivered }: RequestIdentity,
    atMicros: number,
    result: IntakeResult | undefined,
    segmentNumber: number,
    ageMs = 0,
  ): IndexEntry {
    const [error] = result?.errors ?? NO_ERRORS;
    const bytes = ENTRY_BYTES + (error === undefined ? 0 : 128 + 2 * error.message.length);
    const addedMs = this.#options.timer.now() - ageMs;
    return {
      key,
      digest,
      forgetOnceDelivered,
      atMicros,
      addedMs,
      result,
      segmentNumber,
      bytes,
      pending: undefined,
    };
  }

  #find({ key, digest }: RequestIdentity): IndexEntry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#hasExpired(entry)) return undefined;
    if (entry.digest !== digest)
      throw new DendroError(
        'idempotency_conflict',
        'this Idempotency-Key was used with a different body in the last 10 minutes; use a new key for each body',
      );
    return entry;
  }

  #put(entry: IndexEntry): IndexEntry {
    const previous = this.#entries.get(entry.key);
    // A Map keeps the position of an existing key, but the new entry must be the last.
    if (previous !== undefined) this.#delete(previous);
    this.#entries.set(entry.key, entry);
    this.#bytes += entry.bytes;
    this.#evict();
    return entry;
  }

  /**
   * Evicts many entries at a time, because finding the oldest one is slow: an iteration of a Map first skips all entries that
   * were deleted from its start. If one entry were evicted for each new one, every eviction would first skip many deleted
   * entries: about half the number of entries in the index.
   */
  #evict(): void {
    const { maxBytes, timer } = this.#options;
    const isFull = this.#bytes > maxBytes;
    if (!isFull && timer.now() < this.#nextEvictionMs) return;
    this.#nextEvictionMs = timer.now() + EVICTION_INTERVAL_MS;
    const targetBytes = isFull ? maxBytes * EVICTION_TARGET : maxBytes;
    for (const oldest of this.#entries.values()) {
      if (!this.#hasExpired(oldest) && this.#bytes <= targetBytes) break;
      this.#delete(oldest);
    }
  }

  #delete(entry: IndexEntry): void {
    this.#entries.delete(entry.key);
    this.#bytes -= entry.bytes;
  }

  #hasExpired({ addedMs }: IndexEntry): boolean {
    return this.#options.timer.now() - addedMs >= TTL_MS;
  }
}

function createPending(): IndexEntry['pending'] {
  let resolve = () => {};
  const promise = new Promise<void>(resolvePromise => {
    resolve = resolvePromise;
  });
  return { promise, resolve };
}

function resolvePending(entry: IndexEntry): void {
  const { pending } = entry;
  entry.pending = undefined;
  pending?.resolve();
}
