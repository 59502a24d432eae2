// The response type, and send(), which writes a response. Only parser-error.ts does not use it: Node has no response object there.
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { UnsentResponse, UnsentResponses } from './unsent-responses.ts';

/** Alternating names and values: Node writes such a list faster than an object. */
export type HeaderList = string[];

export interface HttpResponse {
  readonly status: number;
  /** Not shared with another response: send() appends to it. */
  readonly headers: HeaderList;
  readonly body: string | Buffer;
  /** The hash of the token, for a response that can be large: it counts towards the token's share of the unsent bytes. */
  readonly caller?: string | undefined;
  /** Sent instead of `body`, in chunks, without Content-Length. Its `release` is called once in any case. */
  readonly stream?: ResponseStream;
  /** Called once: whether the response was completely written to its connection (delivery.ts). */
  readonly reportDelivery?: ((isDelivered: boolean) => void) | undefined;
  /** The response to a wrong secret: the auth throttle may delay it. */
  readonly isThrottled?: boolean;
}

export interface ResponseStream {
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly release: () => Promise<void>;
  /** Called if the chunks fail, or if the client disconnects. The client sees a response that breaks off. */
  readonly onError: (error: unknown) => void;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonResponse(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): HttpResponse {
  const list = toHeaderList({ 'Content-Type': JSON_TYPE, ...headers });
  return { status, headers: list, body: JSON.stringify(body) };
}

export function toHeaderList(headers: Readonly<Record<string, string>>): HeaderList {
  return Object.entries(headers).flat();
}

/** Weak comparison, as RFC 9110 requires for If-None-Match. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some(candidate => candidate.trim().replace(/^W\//, '') === etag);
}

/** A larger body is written in slices, so that the client's progress can be observed and TLS encrypts only a slice at a time. */
const SLICE_BYTES = 64 * 1024;

/** All responses without a caller have one share of the unsent bytes together. */
const NO_CALLER = 'none';

/**
 * Sets Content-Length, so that HEAD returns it too, except for a stream and for the statuses 204 and 304. Node omits the body of a
 * response to HEAD.
 */
export function send(
  rawResponse: ServerResponse,
  { status, headers, body, caller, stream }: HttpResponse,
  unsentResponses: UnsentResponses,
): void {
  headers.push('X-Content-Type-Options', 'nosniff');
  if (stream !== undefined) {
    rawResponse.writeHead(status, headers);
    void sendStream(rawResponse, stream, unsentResponses);
    return;
  }
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  if (status !== 204 && status !== 304) headers.push('Content-Length', String(bytes));
  rawResponse.writeHead(status, headers);
  if (rawResponse.req.method === 'HEAD') rawResponse.end();
  else if (typeof body !== 'string' && bytes > SLICE_BYTES)
    writeInSlices(body, unsentResponses.track(rawResponse, caller ?? NO_CALLER, bytes), unsentResponses);
  else {
    rawResponse.end(body);
    if (!rawResponse.writableFinished) unsentResponses.track(rawResponse, caller ?? NO_CALLER, bytes);
  }
}

/** Whenever half of `rest` is written, copies the other half, so that the memory of the written half can be freed. */
function writeInSlices(body: Buffer, unsent: UnsentResponse, unsentResponses: UnsentResponses): void {
  const { rawResponse } = unsent;
  let rest = body;
  let start = 0;
  const writeSlice = () => {
    if (start >= rest.length / 2) {
      rest = Buffer.from(rest.subarray(start));
      start = 0;
      unsentResponses.reduceTo(unsent, rest.length);
    }
    const slice = rest.subarray(start, start + SLICE_BYTES);
    start += slice.length;
    unsentResponses.countSent(unsent, slice.length);
    if (start === rest.length) rawResponse.end(slice);
    else if (rawResponse.write(slice)) writeSlice();
    else rawResponse.once('drain', writeSlice);
  };
  writeSlice();
}

/** Reads the next chunk when the client has taken the one before, and disconnects a client that reads too slowly. */
async function sendStream(
  rawResponse: ServerResponse,
  { chunks, release, onError }: ResponseStream,
  unsentResponses: UnsentResponses,
): Promise<void> {
  const unsent = unsentResponses.track(rawResponse, NO_CALLER, 0);
  const counted = async function* () {
    for await (const chunk of chunks)
      for (let start = 0; start < chunk.length; start += SLICE_BYTES) {
        yield chunk.subarray(start, start + SLICE_BYTES);
        unsentResponses.countSent(unsent, Math.min(SLICE_BYTES, chunk.length - start));
      }
  };
  try {
    await pipeline(counted, rawResponse);
  } catch (error) {
    onError(error);
  } finally {
    await release();
  }
}
