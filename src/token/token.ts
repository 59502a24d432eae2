// What a token is: a secret of which only the SHA-256 is kept, what it opens, and how far.
import { hash, randomBytes } from 'node:crypto';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';

export interface Token {
  readonly name: string;
  /** Of the whole secret, in hexadecimal. */
  readonly sha256: string;
  readonly scopes: readonly string[];
  /** Pinned to these; none: any project. */
  readonly projects?: readonly string[] | undefined;
  /** ISO 8601. */
  readonly expires_at?: string | undefined;
  /** Requests a second. */
  readonly rate?: number | undefined;
  /** The highest tier it may ask for; a higher one behaves as this. */
  readonly tier?: string | undefined;
  /** Addresses in its answers are replaced. */
  readonly redact_pii?: boolean | undefined;
}

export const ALL_SCOPES = ['query', 'ingest', 'metrics'] as const;

export const SCOPE_FORMS = 'query, query:<endpoint name>, ingest, ingest:<log kind>, metrics';

export function isScope(text: string): boolean {
  const [area, ...below] = text.split(':');
  const name = below.join(':');
  if (below.length === 0) return ALL_SCOPES.some(scope => scope === text);
  return area === 'query'
    ? /^[a-z0-9_.-]+$/.test(name)
    : area === 'ingest' && LOG_KINDS.some(kind => kind === name);
}

/** `dnd_` and 43 URL-safe characters: 256 random bits. */
export function createSecret(): string {
  return `dnd_${randomBytes(32).toString('base64url')}`;
}

export function hashSecret(secret: string): string {
  return hash('sha256', secret);
}

export function hasExpired({ expires_at }: Token, clock: Clock): boolean {
  return expires_at !== undefined && clock() >= (parseTimestamp(expires_at) ?? 0n);
}

/** A scope opens itself and what lies below it: `query` opens `query:logs.all`. */
export function allows({ scopes }: Token, area: string, below?: string): boolean {
  return scopes.includes(area) || (below !== undefined && scopes.includes(`${area}:${below}`));
}
