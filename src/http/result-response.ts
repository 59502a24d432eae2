// The answer to a query on the wire: its bytes, how old and how complete they are, and how they came.

import type { EndpointDefinition } from '../endpoint/definition.ts';
import type { ResultFormat } from '../endpoint/encode-rows.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import type { EndpointRun } from '../endpoint/run-endpoint.ts';
import { CONTENT_TYPES } from './content-negotiation.ts';
import { type HeaderList, type HttpResponse, listHeaders } from './response.ts';

/** Whatever a copy of an answer depends on besides its URL. */
const VARY = 'X-API-KEY, Authorization, Accept, Accept-Encoding';

/** The headers of a hit that its whole second shares. */
interface HitHeaders {
  readonly age: number;
  readonly maxAge: number;
  readonly list: Readonly<HeaderList>;
}

/** Texts that are put together and checked anew for every call show in the time of a hit. */
const lastHitHeaders = new WeakMap<EncodedResult, HitHeaders>();

export function resultResponse(
  { cache }: EndpointDefinition,
  ran: EndpointRun,
  format: ResultFormat,
  encoding: EncodedResult,
  ifNoneMatch: string | undefined,
  tookMs: number,
): HttpResponse {
  const age = Math.floor(ran.ageMs / 1000);
  const maxAge = age + Math.ceil(ran.freshForMs / 1000);
  let known = ran.outcome === 'hit' ? lastHitHeaders.get(encoding) : undefined;
  if (known?.age !== age || known.maxAge !== maxAge) {
    const ttl = cache === 'none' ? 0 : cache.lifetime_seconds - age;
    known = { age, maxAge, list: describeAnswer(ran, encoding, age, maxAge, ttl) };
    if (ran.outcome === 'hit') lastHitHeaders.set(encoding, known);
  }
  const headers = [...known.list, 'Server-Timing', describeTiming(ran, tookMs)];
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, encoding.etag))
    return { status: 304, headers, body: '' };
  headers.push('Content-Type', CONTENT_TYPES[format]);
  if (encoding.coding !== 'identity') headers.push('Content-Encoding', encoding.coding);
  return { status: 200, headers, body: encoding.body };
}

function describeAnswer(
  { outcome, value }: EndpointRun,
  { etag }: EncodedResult,
  age: number,
  maxAge: number,
  ttl: number,
): HeaderList {
  const { dataThrough, clipped } = value.notes;
  return listHeaders({
    ETag: etag,
    Age: String(age),
    'Cache-Control': outcome === 'bypass' ? 'no-store' : `private, max-age=${maxAge}`,
    Vary: VARY,
    'Cache-Status': describeOutcome(outcome, ttl),
    ...(dataThrough !== undefined && { 'Dendro-Data-Through': dataThrough }),
    ...(clipped.length > 0 && { 'Dendro-Clipped': clipped.join(', ') }),
  });
}

/** RFC 9211. */
function describeOutcome(outcome: EndpointRun['outcome'], ttl: number): string {
  switch (outcome) {
    case 'hit':
      return `dendro; hit; ttl=${ttl}`;
    case 'collapsed':
      return 'dendro; fwd=miss; collapsed';
    default:
      return `dendro; fwd=${outcome}`;
  }
}

/** Where the time went: in the store's queue, in the store, and, for the rest, on the way through the cache. */
function describeTiming({ outcome, value: { result } }: EndpointRun, tookMs: number): string {
  if (outcome === 'hit' || outcome === 'collapsed') return `cache;dur=${toHundredths(tookMs)}`;
  const { queuedMs, executedMs } = result;
  const restMs = Math.max(0, tookMs - queuedMs - executedMs);
  return `cache;dur=${toHundredths(restMs)}, queue;dur=${toHundredths(queuedMs)}, store;dur=${toHundredths(executedMs)}`;
}

/** Not toFixed(2), which shows in the time of a hit: it makes its text anew each time. */
function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** Weak comparison, as RFC 9110 asks for If-None-Match. */
function matches(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some(candidate => candidate.trim().replace(/^W\//, '') === etag);
}
