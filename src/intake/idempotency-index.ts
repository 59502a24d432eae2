// Index of the requests of the last ten minutes: a repeat gets the result of the first request and is not stored again. In
// memory only. After a restart it is rebuilt from the spool and the idempotency log.
import { hash } from 'node:crypto';
import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { RecordError } from './parse-body.ts';

export interface IntakeResult {
  readonly accepted: number;
  readonly rejected: number;
  /** Errors of the first rejected records. */
  readonly errors: readonly RecordError[];
}

/** A completed request, as the spool and the idempotency log keep it on disk (idempotency-log.ts has the format). */
export interface CompletedRequest {
  /** From `createDeduplicationKey`. */
  readonly key: string;
  /** SHA-256 of the decompressed body. */
  readonly digest: string;
  /** Time of arrival. */
  readonly atMicros: number;
  readonly result: IntakeResult;
}

/** A request in the index, which may still be in flight. */
interface IndexEntry {
  readonly digest: string;
  readonly atMicros: number;
  /** A promise while the request is in flight. */
  readonly result: IntakeResult | Promise<IntakeResult>;
}

const TTL_MICROS = 600_000_000;
/** About 150 MB of memory: 1,600 requests per second for ten minutes. Beyond this the oldest entries are evicted early. */
const MAX_ENTRIES = 1_000_000;

/**
 * Creates the key by which a repeat is recognized: a hash of the sender, the kind, and either the Idempotency-Key header or
 * the digest of the body. Returns undefined if repeats cannot be recognized: the header is missing, and some record has no
 * identity (`hasIdentity` in logs/record.ts).
 */
export function createDeduplicationKey(
  sender: string,
  kind: LogKind,
  idempotencyKey: string | undefined,
  { digest, canDeduplicate }: { readonly digest: string; readonly canDeduplicate: boolean },
): string | undefined {
  if (idempotencyKey === undefined && !canDeduplicate) return undefined;
  const identity = idempotencyKey === undefined ? ['body', digest] : ['key', idempotencyKey];
  return hash('sha256', JSON.stringify([sender, kind, ...identity]), 'base64url').slice(0, 32);
}

export class IdempotencyIndex {
  /** In order of arrival, the oldest first. */
  readonly #entries = new Map<string, IndexEntry>();

  /**
   * Returns the result of the first request with this key, or its promise while that request is in flight. Throws
   * `idempotency_conflict` if the first request had a different body.
   */
  get(key: string, digest: string, nowMicros: number): IndexEntry['result'] | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || hasExpired(entry, nowMicros)) return undefined;
    if (entry.digest !== digest)
      throw new DendroError(
        'idempotency_conflict',
        'this Idempotency-Key was used with a different body in the last 10 minutes; use a new key for each body',
      );
    return entry.result;
  }

  set(key: string, entry: IndexEntry): void {
    this.#entries.delete(key); // a Map keeps the position of an existing key; the new entry must be the last
    this.#entries.set(key, entry);
    for (const [oldestKey, oldest] of this.#entries) {
      if (!hasExpired(oldest, entry.atMicros) && this.#entries.size <= MAX_ENTRIES) break;
      this.#entries.delete(oldestKey);
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

export function hasExpired({ atMicros }: Pick<IndexEntry, 'atMicros'>, nowMicros: number): boolean {
  return nowMicros - atMicros >= TTL_MICROS;
}
