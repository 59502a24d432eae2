// The response to a query: the encoded result, and headers for its age, its completeness and how it was obtained.
import type { EndpointDefinition } from '../endpoint/definition.ts';
import type { ResultFormat } from '../endpoint/encode-rows.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import type { EndpointRun } from '../endpoint/run-endpoint.ts';
import { CONTENT_TYPES } from './content-negotiation.ts';
import { type HeaderList, type HttpResponse, matchesEtag, toHeaderList } from './response.ts';

/** The request headers that a result depends on besides the URL. */
const VARY = 'X-API-KEY, Authorization, Accept, Accept-Encoding';

/** Headers that all hits on a result share within the same second. */
interface HitHeaders {
  readonly age: number;
  readonly maxAge: number;
  readonly list: Readonly<HeaderList>;
}

/** Memoizes the headers of a hit: building the texts for every request is a measurable share of a cache hit. */
const lastHitHeaders = new WeakMap<EncodedResult, HitHeaders>();

export function resultResponse(
  { cache }: EndpointDefinition,
  run: EndpointRun,
  format: ResultFormat,
  encoding: EncodedResult,
  ifNoneMatch: string | undefined,
  tookMs: number,
): HttpResponse {
  const age = Math.floor(run.ageMs / 1000);
  const maxAge = age + Math.ceil(run.freshForMs / 1000);
  let shared = run.outcome === 'hit' ? lastHitHeaders.get(encoding) : undefined;
  if (shared?.age !== age || shared.maxAge !== maxAge) {
    const ttl = cache === 'none' ? 0 : cache.lifetime_seconds - age;
    shared = { age, maxAge, list: listResultHeaders(run, encoding, age, maxAge, ttl) };
    if (run.outcome === 'hit') lastHitHeaders.set(encoding, shared);
  }
  const headers = [...shared.list, 'Server-Timing', formatServerTiming(run, tookMs)];
  if (matchesEtag(ifNoneMatch, encoding.etag)) return { status: 304, headers, body: '' };
  headers.push('Content-Type', CONTENT_TYPES[format]);
  if (encoding.contentCoding !== 'identity') headers.push('Content-Encoding', encoding.contentCoding);
  return { status: 200, headers, body: encoding.body };
}

function listResultHeaders(
  { outcome, result }: EndpointRun,
  { etag }: EncodedResult,
  age: number,
  maxAge: number,
  ttl: number,
): HeaderList {
  const { dataThrough, clipped } = result.notes;
  return toHeaderList({
    ETag: etag,
    Age: String(age),
    'Cache-Control': outcome === 'bypass' ? 'no-store' : `private, max-age=${maxAge}`,
    Vary: VARY,
    'Cache-Status': formatCacheStatus(outcome, ttl),
    ...(dataThrough !== undefined && { 'Dendro-Data-Through': dataThrough }),
    ...(clipped.length > 0 && { 'Dendro-Clipped': clipped.join(', ') }),
  });
}

/** RFC 9211. */
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

/** Time in the store's queue, in the store, and in the cache, which includes everything else. */
function formatServerTiming({ outcome, result }: EndpointRun, tookMs: number): string {
  if (outcome === 'hit' || outcome === 'collapsed') return `cache;dur=${toHundredths(tookMs)}`;
  const { queuedMs, executedMs } = result.timing;
  const cacheMs = Math.max(0, tookMs - queuedMs - executedMs);
  return `cache;dur=${toHundredths(cacheMs)}, queue;dur=${toHundredths(queuedMs)}, store;dur=${toHundredths(executedMs)}`;
}

/** Rounds instead of calling toFixed(2), which is a measurable share of a cache hit. */
function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}
