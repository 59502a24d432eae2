// Who is calling: X-API-KEY, or Authorization: Bearer. A token in the query string is never read.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import type { Clock } from '../system/clock.ts';
import type { AuthThrottle } from '../token/auth-throttle.ts';
import type { LastUsedTimes } from '../token/last-used.ts';
import type { RateLimit } from '../token/rate-limit.ts';
import { hasExpired, type Token } from '../token/token.ts';
import type { TokenSet } from '../token/token-set.ts';

/** What decides who comes in. */
export interface AuthDependencies {
  readonly tokens: TokenSet;
  readonly clock: Clock;
  readonly rateLimit: RateLimit;
  readonly authThrottle: AuthThrottle;
  readonly lastUsed: LastUsedTimes;
}

/**
 * The caller's token; without a good one, a promise that fails with `unauthorized` when it is time to. Throws
 * `rate_limited` where the token asks too often.
 */
export function authenticate(door: AuthDependencies, request: IncomingMessage): Token | Promise<never> {
  const token = identify(door, request);
  if (token === undefined)
    return refuse(door, request).then(refusal => {
      throw refusal;
    });
  const waitSeconds = door.rateLimit.take(token);
  if (waitSeconds > 0)
    throw new DendroError('rate_limited', `the token may make ${token.rate} requests a second`, {
      retryAfterSeconds: Math.ceil(waitSeconds),
    });
  door.lastUsed.record(token);
  return token;
}

/** The caller's token, if it has a good one. For routes that answer without: a wrong token is slowed all the same. */
export async function identifyOptional(
  door: AuthDependencies,
  request: IncomingMessage,
): Promise<Token | undefined> {
  const token = identify(door, request);
  if (token === undefined) await refuse(door, request);
  return token;
}

/**
 * The good secret that came last on a connection, and its hash: nearly always the next is the same, and to hash it again
 * takes a tenth of the time of a cached hit. Whether its token is still good is looked up each time.
 */
const lastSecrets = new WeakMap<Socket, { readonly secret: string; readonly sha256: string }>();

function identify(
  { tokens, clock }: AuthDependencies,
  { headers, socket }: IncomingMessage,
): Token | undefined {
  const secret = secretOf(headers);
  if (secret === '') return undefined;
  const last = lastSecrets.get(socket);
  const isLast = last !== undefined && isSameSecret(last.secret, secret);
  const token = isLast ? tokens.findByHash(last.sha256) : tokens.find(secret);
  if (token === undefined || hasExpired(token, clock)) return undefined;
  if (!isLast) lastSecrets.set(socket, { secret, sha256: token.sha256 });
  return token;
}

/** Takes as long wherever they differ: behind a proxy, callers share connections. */
function isSameSecret(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let index = 0; index < one.length; index++)
    difference |= one.charCodeAt(index) ^ other.charCodeAt(index);
  return difference === 0;
}

/** How many refusals wait on a connection; past the limit it is closed, since thousands would fill the memory. */
const waitingRefusals = new WeakMap<Socket, number>();
const MOST_WAITING_REFUSALS = 300;

/** A wrong token is a guess, and guesses are slowed; no token at all is none. */
async function refuse(
  { authThrottle }: AuthDependencies,
  { headers, socket }: IncomingMessage,
): Promise<DendroError> {
  if (secretOf(headers) === '')
    return new DendroError(
      'unauthorized',
      'a token is needed, in the header X-API-KEY or as Authorization: Bearer',
    );
  const waiting = waitingRefusals.get(socket) ?? 0;
  if (waiting >= MOST_WAITING_REFUSALS) socket.destroy();
  if (!socket.destroyed) {
    waitingRefusals.set(socket, waiting + 1);
    await authThrottle.delayRefusal(socket.remoteAddress ?? '');
    waitingRefusals.set(socket, (waitingRefusals.get(socket) ?? 1) - 1);
  }
  return new DendroError('unauthorized', 'the token is not known, has expired or was revoked');
}

/** An empty header counts as absent; where both are given, X-API-KEY counts. */
function secretOf(headers: IncomingHttpHeaders): string {
  const key = headers['x-api-key'];
  if (typeof key === 'string' && key !== '') return key;
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '';
}
