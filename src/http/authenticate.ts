// Authentication. A secret is the string that the client sends, in X-API-KEY or Authorization: Bearer. A token is the stored
// record with the hash of a secret. A secret in the query string is never read.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { RefusedError } from '../domain/errors.ts';
import type { Clock } from '../system/clock.ts';
import type { TokenSet } from '../token/active-tokens.ts';
import type { LastUsedTimes } from '../token/last-used.ts';
import type { RateLimit } from '../token/rate-limit.ts';
import { allows, hasExpired, type Token } from '../token/token.ts';
import { missingScopeError } from './error-response.ts';

export interface AuthDependencies {
  readonly tokens: TokenSet;
  readonly clock: Clock;
  readonly rateLimit: RateLimit;
  readonly lastUsed: Pick<LastUsedTimes, 'record'>;
}

/** The request has a secret that belongs to no valid token. It may be a guess, so the auth throttle may delay the response. */
export class WrongSecretError extends RefusedError {
  constructor(reason: 'unknown_token' | 'expired_token', tokenName: string | undefined) {
    super('unauthorized', 'the token is unknown, expired or revoked', { reason, tokenName });
  }
}

/** Returns the request's token. Throws `unauthorized` without a valid token, and `rate_limited` if the token exceeds its rate. */
export function authenticate(dependencies: AuthDependencies, rawRequest: IncomingMessage): Token {
  const token = findToken(dependencies, rawRequest);
  if (typeof token === 'string') throw toRefusedError(dependencies, rawRequest, token);
  const waitSeconds = dependencies.rateLimit.take(token);
  if (waitSeconds > 0)
    throw new RefusedError('rate_limited', `the token is limited to ${token.rate} requests per second`, {
      reason: 'rate_limited',
      tokenName: token.name,
      retryAfterSeconds: Math.ceil(waitSeconds),
    });
  dependencies.lastUsed.record(token);
  return token;
}

/** Returns the request's token like `authenticate`, for a route under /api/admin/. Throws `forbidden` without the scope `admin`. */
export function authenticateAdmin(dependencies: AuthDependencies, rawRequest: IncomingMessage): Token {
  const token = authenticate(dependencies, rawRequest);
  if (!allows(token, 'admin')) throw missingScopeError(token, 'admin');
  return token;
}

/** Why a request has no valid token. */
type InvalidTokenReason = 'no_token' | 'unknown_token' | 'expired_token';

function toRefusedError(
  { tokens }: AuthDependencies,
  { headers }: IncomingMessage,
  reason: InvalidTokenReason,
): RefusedError {
  if (reason === 'no_token')
    return new RefusedError(
      'unauthorized',
      'a token is required, in the header X-API-KEY or as Authorization: Bearer <token>',
      { reason },
    );
  const tokenName = reason === 'expired_token' ? tokens.find(readSecret(headers))?.name : undefined;
  return new WrongSecretError(reason, tokenName);
}

/** Returns the request's token, or why the request has no valid one. */
export function findToken(
  { tokens, clock }: AuthDependencies,
  { headers }: IncomingMessage,
): Token | InvalidTokenReason {
  const secret = readSecret(headers);
  if (secret === '') return 'no_token';
  const token = tokens.find(secret);
  if (token === undefined) return 'unknown_token';
  return hasExpired(token, clock) ? 'expired_token' : token;
}

/** An empty header counts as absent. If both headers are present, X-API-KEY is used. */
function readSecret(headers: IncomingHttpHeaders): string {
  const key = headers['x-api-key'];
  if (typeof key === 'string' && key !== '') return key;
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '';
}
