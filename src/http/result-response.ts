// The response to a query: the encoded result, and headers that describe its age, its completeness and its use of the cache.
import type { ResultFormat } from '../endpoint/encode-rows.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import type { EndpointRun } from '../endpoint/run-endpoint.ts';
import { CONTENT_TYPES } from './content-negotiation.ts';
import { type HeaderList, type HttpResponse, matchesEtag, toHeaderList } from './response.ts';

/** The request headers that a result depends on besides the URL. */
const VARY = 'X-API-KEY, Authorization, Accept, Accept-Encoding';

/** Headers that all cache hits on a result share within the same second. `age` and `maxAge` are in seconds. */
interface HitHeaders {
  readonly age: number;
  readonly maxAge: number;
  readonly list: Readonly<HeaderList>;
}

/** Memoized, because building the headers for every request takes a measurable share of the time of a cache hit. */
const lastHitHeaders = new WeakMap<EncodedResult, HitHeaders>();

interface QueryResponseInput {
  readonly run: EndpointRun;
  readonly format: ResultFormat;
  readonly encoded: EncodedResult;
  /** The header Dendro-Ignored. */
  readonly ignored: string | undefined;
  /** The request header If-None-Match. */
  readonly ifNoneMatch: string | undefined;
  readonly tookMs: number;
  /** `sha256` of the token. */
  readonly caller: string;
}

export function resultResponse(input: QueryResponseInput): HttpResponse {
  const { run, format, encoded, ignored, ifNoneMatch, tookMs, caller } = input;
  const age = Math.floor(run.ageMs / 1000);
  const maxAge = age + Math.ceil(run.freshForMs / 1000); // max-age counts from the creation of the result, like Age
  let shared = run.outcome === 'hit' ? lastHitHeaders.get(encoded) : undefined;
  if (shared?.age !== age || shared.maxAge !== maxAge) {
    shared = { age, maxAge, list: listResultHeaders(run, encoded, age, maxAge) };
    if (run.outcome === 'hit') lastHitHeaders.set(encoded, shared);
  }
  const headers = [...shared.list, 'Server-Timing', formatServerTiming(run, tookMs)];
  if (ignored !== undefined) headers.push('Dendro-Ignored', ignored);
  if (matchesEtag(ifNoneMatch, encoded.etag)) return { status: 304, headers, body: '' };
  headers.push('Content-Type', CONTENT_TYPES[format]);
  if (encoded.contentCoding !== 'identity') headers.push('Content-Encoding', encoded.contentCoding);
  return { status: 200, headers, body: encoded.body, caller };
}

function listResultHeaders(
  { outcome, value, expiresInMs }: EndpointRun,
  { etag, clipped, nextCursor }: EncodedResult,
  age: number,
  maxAge: number,
): HeaderList {
  const { dataThrough, missingParts } = value.notes;
  return toHeaderList({
    ETag: etag,
    Age: String(age),
    'Cache-Control': outcome === 'bypass' ? 'no-store' : `private, max-age=${maxAge}`,
    Vary: VARY,
    'Cache-Status': formatCacheStatus(outcome, Math.ceil(expiresInMs / 1000)),
    ...(dataThrough !== undefined && { 'Dendro-Data-Through': dataThrough }),
    ...(clipped.length > 0 && { 'Dendro-Clipped': clipped.join(', ') }),
    ...(missingParts > 0 && { 'Dendro-Missing-Parts': String(missingParts) }),
    ...(nextCursor !== undefined && { 'Dendro-Next-Cursor': nextCursor }),
  });
}

/** The header Cache-Status (RFC 9211). */
function formatCacheStatus(outcome: EndpointRun['outcome'], ttl: number): string {
  switch (outcome) {
    case 'hit':
      return `dendro; hit; ttl=${ttl}`;
    case 'collapsed':
      return 'dendro; fwd=miss; collapsed';
    default:
      return `dendro; fwd=${outcome}`;
  }
}

/**
 * `queue` is the time in the store's queue, and `store` is the time of the query. `cache` is all other time of the request,
 * including the cache lookup. A request that joined a running query has only `cache`, which includes its wait.
 */
function formatServerTiming({ outcome, value }: EndpointRun, tookMs: number): string {
  if (outcome === 'hit' || outcome === 'collapsed') return `cache;dur=${roundToHundredths(tookMs)}`;
  const { queuedMs, executedMs } = value.timing;
  const cacheMs = Math.max(0, tookMs - queuedMs - executedMs);
  return `cache;dur=${roundToHundredths(cacheMs)}, queue;dur=${roundToHundredths(queuedMs)}, store;dur=${roundToHundredths(executedMs)}`;
}

/** Does not call toFixed(2), which takes a measurable share of the time of a cache hit. */
function roundToHundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}
