// Authentication. A secret is the string that the client sends, in X-API-KEY or Authorization: Bearer. A token is the stored
// record with the hash of a secret. A secret in the query string is never read.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import type { Clock } from '../system/clock.ts';
import type { TokenSet } from '../token/active-tokens.ts';
import type { AuthThrottle } from '../token/auth-throttle.ts';
import type { LastUsedTimes } from '../token/last-used.ts';
import type { RateLimit } from '../token/rate-limit.ts';
import { hasExpired, type Token } from '../token/token.ts';

export interface AuthDependencies {
  readonly tokens: TokenSet;
  readonly clock: Clock;
  readonly rateLimit: RateLimit;
  readonly authThrottle: AuthThrottle;
  readonly lastUsed: LastUsedTimes;
  readonly clientAddressOf: (rawRequest: IncomingMessage) => string;
}

/**
 * Returns the request's token. Without a valid token, returns a promise that rejects with `unauthorized` after the delay of the
 * auth throttle. Throws `rate_limited` if the token exceeds its rate. Returns no promise on success, so that a cache hit stays
 * synchronous.
 */
export function authenticate(
  dependencies: AuthDependencies,
  rawRequest: IncomingMessage,
): Token | Promise<never> {
  const token = findToken(dependencies, rawRequest);
  if (token === undefined) return rejectUnauthorized(dependencies, rawRequest);
  const waitSeconds = dependencies.rateLimit.take(token);
  if (waitSeconds > 0)
    throw new DendroError('rate_limited', `the token is limited to ${token.rate} requests per second`, {
      retryAfterSeconds: Math.ceil(waitSeconds),
    });
  dependencies.lastUsed.record(token);
  return token;
}

/** For routes that need no token: returns the request's token if it is valid. A wrong secret is throttled here, too. */
export async function authenticateOptional(
  dependencies: AuthDependencies,
  rawRequest: IncomingMessage,
): Promise<Token | undefined> {
  const token = findToken(dependencies, rawRequest);
  if (token === undefined) await throttleWrongSecret(dependencies, rawRequest);
  return token;
}

/**
 * The last valid secret of each connection and its hash. The next request nearly always has the same secret, and hashing it
 * again would take a tenth of the time of a cache hit. Every request still checks that the token exists and has not expired.
 */
const lastSecrets = new WeakMap<Socket, { readonly secret: string; readonly sha256: string }>();

function findToken(
  { tokens, clock }: AuthDependencies,
  { headers, socket }: IncomingMessage,
): Token | undefined {
  const secret = readSecret(headers);
  if (secret === '') return undefined;
  const last = lastSecrets.get(socket);
  const isLastSecret = last !== undefined && isSameSecret(last.secret, secret);
  const token = isLastSecret ? tokens.findByHash(last.sha256) : tokens.find(secret);
  if (token === undefined || hasExpired(token, clock)) return undefined;
  if (!isLastSecret) lastSecrets.set(socket, { secret, sha256: token.sha256 });
  return token;
}

/**
 * Constant time: clients behind a proxy share connections, so one could otherwise find another's secret from response times.
 */
function isSameSecret(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let index = 0; index < one.length; index++)
    difference |= one.charCodeAt(index) ^ other.charCodeAt(index);
  return difference === 0;
}

async function rejectUnauthorized(
  dependencies: AuthDependencies,
  rawRequest: IncomingMessage,
): Promise<never> {
  if (readSecret(rawRequest.headers) === '')
    throw new DendroError(
      'unauthorized',
      'a token is required, in the header X-API-KEY or as Authorization: Bearer <token>',
    );
  await throttleWrongSecret(dependencies, rawRequest);
  throw new DendroError('unauthorized', 'the token is unknown, expired or revoked');
}

/** Responses that the auth throttle delays, by connection. Above the limit the connection is closed, to bound memory. */
const delayedResponses = new WeakMap<Socket, number>();
const MAX_DELAYED_RESPONSES = 300;

/** Delays the response to a wrong secret, which may be a guess. A request without a secret is not delayed. */
async function throttleWrongSecret(
  { authThrottle, clientAddressOf }: AuthDependencies,
  rawRequest: IncomingMessage,
): Promise<void> {
  if (readSecret(rawRequest.headers) === '') return;
  const { socket } = rawRequest;
  const delayed = delayedResponses.get(socket) ?? 0;
  if (delayed >= MAX_DELAYED_RESPONSES) socket.destroy();
  if (socket.destroyed) return;
  delayedResponses.set(socket, delayed + 1);
  await authThrottle.delayFailure(clientAddressOf(rawRequest));
  delayedResponses.set(socket, (delayedResponses.get(socket) ?? 1) - 1);
}

/** An empty header counts as absent. If both headers are present, X-API-KEY is used. */
function readSecret(headers: IncomingHttpHeaders): string {
  const key = headers['x-api-key'];
  if (typeof key === 'string' && key !== '') return key;
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '';
}
