// A cache hit: a request whose result is cached and encoded. Its response is one synchronous function: it finds the token, then
// the cache key that an earlier request with the same token and URL had, then the result. Awaiting anything takes a noticeable
// part of the time of a cache hit, and so does parsing the URL or a header. Every other request runs through query.ts.
import type { IncomingMessage } from 'node:http';
import type { ResultCache } from '../cache/result-cache.ts';
import { MAX_HIT_REQUESTS, MAX_HIT_TARGET_LENGTH } from '../domain/limits.ts';
import type { EncodingRequest, EndpointResult } from '../endpoint/endpoint-result.ts';
import type { Token } from '../token/token.ts';
import { type AuthDependencies, findToken } from './authenticate.ts';
import { checkRequest } from './request-limits.ts';
import type { HttpResponse } from './response.ts';
import { resultResponse } from './result-response.ts';

export interface CacheHit {
  readonly endpoint: string;
  readonly response: HttpResponse;
  readonly durationMs: number;
}

/** What an earlier request was allowed to get. It depends on the token, the endpoints, the URL and two headers, never on the time. */
interface AllowedRequest {
  readonly endpoint: string;
  /** The key of the cached result. */
  readonly key: string;
  readonly encoding: EncodingRequest;
  /** The header Dendro-Ignored. */
  readonly ignored: string | undefined;
  readonly accept: string | undefined;
  readonly acceptEncoding: string | undefined;
}

export interface HitDependencies extends AuthDependencies {
  readonly cache?: ResultCache<EndpointResult> | undefined;
  readonly cacheHits: CacheHits;
}

export class CacheHits {
  /** By token, then by target. A reload of the tokens creates new objects, so a changed token has no allowed request. */
  #requests = new WeakMap<Token, Map<string, AllowedRequest>>();
  #size = 0;

  /** Call it with a GET request that got a small result from the cache, or stored one there. */
  allow(
    token: Token,
    { url: target = '', headers }: IncomingMessage,
    request: Pick<AllowedRequest, 'endpoint' | 'key' | 'encoding' | 'ignored'>,
  ): void {
    if (target.length > MAX_HIT_TARGET_LENGTH) return;
    if (this.#size >= MAX_HIT_REQUESTS) this.clear();
    const byTarget = this.#requests.get(token) ?? new Map<string, AllowedRequest>();
    this.#requests.set(token, byTarget);
    if (!byTarget.has(target)) this.#size++;
    const { accept, 'accept-encoding': acceptEncoding } = headers;
    byTarget.set(target, { ...request, accept, acceptEncoding });
  }

  /** Call it when the endpoints have changed. */
  clear(): void {
    this.#requests = new WeakMap();
    this.#size = 0;
  }

  find(token: Token, { url = '', headers }: IncomingMessage): AllowedRequest | undefined {
    const request = this.#requests.get(token)?.get(url);
    const isSame =
      request?.accept === headers.accept && request?.acceptEncoding === headers['accept-encoding'];
    return isSame ? request : undefined;
  }
}

/** Returns undefined if the request is not a plain cache hit. The request is then handled like any other, errors included. */
export function findCacheHit(
  serving: HitDependencies,
  rawRequest: IncomingMessage,
  startedAt: number,
): CacheHit | undefined {
  const { cache, cacheHits, rateLimit, lastUsed } = serving;
  const { method, headers } = rawRequest;
  const ifNoneMatch = headers['if-none-match'];
  if (method !== 'GET' || headers['transfer-encoding'] !== undefined) return;
  if (headers['cache-control'] !== undefined && ifNoneMatch === undefined) return; // perhaps no-cache
  const token = findToken(serving, rawRequest);
  if (typeof token === 'string') return;
  const request = cacheHits.find(token, rawRequest);
  if (request === undefined || !isWithinLimits(rawRequest)) return;
  const { endpoint, encoding, ignored } = request;
  const cached = cache?.getCached(request.key);
  const encoded = cached?.value.findEncoded(encoding);
  if (cached === undefined || encoded === undefined || rateLimit.take(token) > 0) return;
  lastUsed.record(token);
  const durationMs = performance.now() - startedAt;
  const response = resultResponse({
    run: cached,
    format: encoding.format,
    encoded,
    ignored,
    ifNoneMatch,
    tookMs: durationMs,
    caller: token.sha256,
  });
  return { endpoint, response, durationMs };
}

function isWithinLimits(rawRequest: IncomingMessage): boolean {
  try {
    checkRequest(rawRequest);
    return true;
  } catch {
    return false;
  }
}
