// Index of the requests acknowledged in the last ten minutes: a retry gets the first response and is not stored again. In
// memory only; the spool and idempotency-log.ts restore it after a restart.
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

/** An acknowledged request. The field names are part of the on-disk formats of the spool and the idempotency log. */
export interface IdempotencyRecord {
  readonly key: string;
  /** SHA-256 of the decompressed body. */
  readonly digest: string;
  readonly atMicros: number;
  readonly answer: IntakeResult;
}

interface IdempotencyEntry {
  readonly digest: string;
  readonly atMicros: number;
  /** A promise while the first request is in flight. */
  readonly answer: IntakeResult | Promise<IntakeResult>;
}

const TTL_MICROS = 600_000_000;
/** About 150 MB of memory: 1,600 requests per second for ten minutes. Beyond this the oldest entries expire early. */
const MAX_ENTRIES = 1_000_000;

/**
 * Creates the key by which a retry is recognized: token, kind, and the Idempotency-Key header or else the digest of the
 * body. Returns undefined if equal bodies can be different events.
 */
export function createDeduplicationKey(
  token: string,
  kind: LogKind,
  idempotencyKey: string | undefined,
  { digest, canDeduplicate }: { readonly digest: string; readonly canDeduplicate: boolean },
): string | undefined {
  if (idempotencyKey === undefined && !canDeduplicate) return undefined;
  const scope = idempotencyKey === undefined ? ['body', digest] : ['key', idempotencyKey];
  return hash('sha256', JSON.stringify([token, kind, ...scope]), 'base64url').slice(0, 32);
}

export class IdempotencyIndex {
  /** In order of arrival, the oldest first. */
  readonly #entries = new Map<string, IdempotencyEntry>();

  /** Returns the first response, or its promise while that request is in flight. Throws if the body is a different one. */
  get(key: string, digest: string, nowMicros: number): IdempotencyEntry['answer'] | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || hasExpired(entry, nowMicros)) return undefined;
    if (entry.digest !== digest)
      throw new DendroError(
        'idempotency_conflict',
        'this Idempotency-Key was used with a different body in the last 10 minutes; use a new key for each body',
      );
    return entry.answer;
  }

  set(key: string, entry: IdempotencyEntry): void {
    this.#entries.delete(key); // so that the new entry is the last in the order
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

export function hasExpired({ atMicros }: Pick<IdempotencyEntry, 'atMicros'>, nowMicros: number): boolean {
  return nowMicros - atMicros >= TTL_MICROS;
}
