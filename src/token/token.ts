// A token: a stored record with the SHA-256 of a secret, scopes and limits. The secret is the string that a client sends. Secrets
// are not stored, except the secret of the first token if there was no terminal to show it (`createFirstToken`).
import { hash, randomBytes } from 'node:crypto';
import { isLogKind } from '../domain/log-columns.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';

export interface Token {
  readonly name: string;
  /** SHA-256 of the whole secret, in hexadecimal. */
  readonly sha256: string;
  readonly scopes: readonly string[];
  /** The projects that the token is pinned (restricted) to. Undefined: any project. */
  readonly projects?: readonly string[] | undefined;
  /** A time that `parseTimestamp` reads. Undefined: never. */
  readonly expires_at?: string | undefined;
  /** Requests per second. Undefined: no limit. */
  readonly rate?: number | undefined;
  /** The maximum tier; a higher one in a request is lowered to it. */
  readonly tier?: string | undefined;
  /** Whether IP addresses in results are replaced. Undefined: no. */
  readonly redact_pii?: boolean | undefined;
}

export const ALL_SCOPES = ['query', 'ingest', 'metrics', 'admin', 'studio'] as const;

export const SCOPE_SYNTAX = 'query, query:<endpoint name>, ingest, ingest:<log kind>, metrics, admin, studio';

export function isScope(text: string): boolean {
  const [area, ...rest] = text.split(':');
  const name = rest.join(':');
  if (rest.length === 0) return ALL_SCOPES.some(scope => scope === text);
  return area === 'query' ? /^[a-z0-9_.-]+$/.test(name) : area === 'ingest' && isLogKind(name);
}

/** `dnd_` and 43 URL-safe characters: 256 random bits. */
export function createSecret(): string {
  return `dnd_${randomBytes(32).toString('base64url')}`;
}

export function hashSecret(secret: string): string {
  return hash('sha256', secret);
}

/** The parsed `expires_at`: parsing it takes a measurable part of the time of a cache hit. */
const expiryTimes = new WeakMap<Token, bigint>();

export function hasExpired(token: Token, clock: Clock): boolean {
  if (token.expires_at === undefined) return false;
  let expiryTime = expiryTimes.get(token);
  if (expiryTime === undefined) {
    expiryTime = parseTimestamp(token.expires_at) ?? 0n;
    expiryTimes.set(token, expiryTime);
  }
  return clock() >= expiryTime;
}

/**
 * Whether the token has the scope `area` or, if `name` is given, `area:name`. A scope includes everything below it: `query`
 * allows `query:logs.all`. `metrics` and `admin` concern all projects, so a token that is pinned to projects cannot use them.
 */
export function allows({ scopes, projects }: Token, area: string, name?: string): boolean {
  if (projects !== undefined && (area === 'metrics' || area === 'admin')) return false;
  return scopes.includes(area) || (name !== undefined && scopes.includes(`${area}:${name}`));
}
