// Requests that were acknowledged in the last ten minutes, so that what is sent again is answered again and not stored
// again. The spool carries them across a restart.
import { hash } from 'node:crypto';
import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { RecordError } from './parse-body.ts';

export interface IntakeResult {
  readonly accepted: number;
  readonly rejected: number;
  /** Of the first of those that are rejected. */
  readonly errors: readonly RecordError[];
}

export interface CompletedRequest {
  readonly key: string;
  /** SHA-256 of the body. */
  readonly digest: string;
  readonly atMicros: number;
  readonly answer: IntakeResult;
}

interface Entry {
  readonly digest: string;
  readonly atMicros: number;
  readonly answer: IntakeResult | Promise<IntakeResult>;
}

const KNOWN_FOR_MICROS = 600_000_000;
/** About 150 MB of memory; 1,600 requests a second for ten minutes. Past it the oldest is forgotten early. */
const MOST_ENTRIES = 1_000_000;

/**
 * What makes two requests the same: token, kind, and the sender's Idempotency-Key or else the bytes. Undefined for bytes
 * that may rightly come twice.
 */
export function createIdempotencyKey(
  token: string,
  kind: LogKind,
  idempotencyKey: string | undefined,
  { digest, hasIdentity }: { readonly digest: string; readonly hasIdentity: boolean },
): string | undefined {
  if (idempotencyKey === undefined && !hasIdentity) return undefined;
  const what = idempotencyKey === undefined ? ['body', digest] : ['key', idempotencyKey];
  return hash('sha256', JSON.stringify([token, kind, ...what]), 'base64url').slice(0, 32);
}

export class IdempotencyIndex {
  readonly #entries = new Map<string, Entry>();

  /** The first answer, or the promise of it while it is being worked on. Throws where the bytes are others. */
  get(key: string, digest: string, nowMicros: number): Entry['answer'] | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || hasExpired(entry, nowMicros)) return undefined;
    if (entry.digest !== digest)
      throw new DendroError(
        'idempotency_conflict',
        'this Idempotency-Key was used with another body in the last 10 minutes; a key stands for one body',
      );
    return entry.answer;
  }

  set(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    for (const [oldest, { atMicros }] of this.#entries) {
      const isYoung = entry.atMicros - atMicros < KNOWN_FOR_MICROS;
      if (isYoung && this.#entries.size <= MOST_ENTRIES) break;
      this.#entries.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

export function hasExpired({ atMicros }: Pick<Entry, 'atMicros'>, nowMicros: number): boolean {
  return nowMicros - atMicros >= KNOWN_FOR_MICROS;
}
