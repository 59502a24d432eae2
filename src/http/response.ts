// The response type, and send(), which writes a response. Only parser-error.ts does not use it: Node has no response object there.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { TLSSocket } from 'node:tls';
import type { UnsentResponses } from './unsent-responses.ts';

/** Alternating names and values: Node writes such a list faster than an object. */
export type HeaderList = string[];

export interface HttpResponse {
  readonly status: number;
  /** Not shared with another response: send() appends to it. */
  readonly headers: HeaderList;
  readonly body: string | Buffer;
  /** `sha256` of the token, for a response that can be large. The response counts towards the token's share of unsent bytes. */
  readonly caller?: string | undefined;
  /** Sent instead of `body`, in chunks, without Content-Length. Its `release` is called exactly once, even if nothing is sent. */
  readonly stream?: ResponseStream;
  /** Called once, with whether the response was completely written to its connection (`watchDelivery`). */
  readonly reportDelivery?: ((isDelivered: boolean) => void) | undefined;
  /** The response to a wrong secret: the auth throttle may delay it. */
  readonly isThrottled?: boolean;
}

export interface ResponseStream {
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  readonly release: () => Promise<void>;
  /** Called if the chunks fail, or if the client disconnects. The response is then incomplete. */
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

/** Only over TLS. For a year after such a response, browsers refuse plain HTTP for its host name, on every port (RFC 6797). */
export function addHsts({ headers }: HttpResponse, socket: Socket): void {
  if (socket instanceof TLSSocket) headers.push('Strict-Transport-Security', 'max-age=31536000');
}

/** Weak comparison, as RFC 9110 requires for If-None-Match. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some(candidate => candidate.trim().replace(/^W\//, '') === etag);
}

/** A larger body is written in chunks, so that the client's progress can be observed and TLS encrypts only a chunk at a time. */
const CHUNK_BYTES = 64 * 1024;

/** Used as the caller of every response without one: together, these responses get the share of one token. */
const NO_CALLER = 'none';

/**
 * Sends the response, without the body if the request is HEAD. Sets Content-Length, also for HEAD, except for a stream and for
 * the statuses 204 and 304.
 */
export function send(
  rawResponse: ServerResponse,
  { status, headers, body, caller = NO_CALLER, stream }: HttpResponse,
  unsentResponses: UnsentResponses,
): void {
  headers.push('X-Content-Type-Options', 'nosniff');
  if (stream !== undefined) {
    rawResponse.writeHead(status, headers);
    void sendStream(rawResponse, stream, unsentResponses.track(rawResponse, caller, 0));
    return;
  }
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  if (status !== 204 && status !== 304) headers.push('Content-Length', String(bytes));
  rawResponse.writeHead(status, headers);
  if (rawResponse.req.method === 'HEAD') rawResponse.end();
  else if (bytes > CHUNK_BYTES) {
    const chunks = [typeof body === 'string' ? Buffer.from(body) : body];
    const sent = unsentResponses.track(rawResponse, caller, bytes);
    void sendStream(rawResponse, { chunks, release: async () => {}, onError: () => {} }, sent);
  } else {
    rawResponse.end(body);
    if (rawResponse.writableFinished) return;
    const sent = unsentResponses.track(rawResponse, caller, bytes);
    rawResponse.once('finish', () => sent(bytes));
  }
}

/** Reads the next chunk when the connection has accepted the one before. A client that reads too slowly is disconnected. */
async function sendStream(
  rawResponse: ServerResponse,
  { chunks, release, onError }: ResponseStream,
  sent: (bytes: number) => void,
): Promise<void> {
  const split = async function* () {
    for await (const data of chunks)
      for (let start = 0; start < data.length; start += CHUNK_BYTES) {
        const chunk = data.subarray(start, start + CHUNK_BYTES);
        yield chunk;
        sent(chunk.length);
      }
  };
  try {
    await pipeline(split, rawResponse);
  } catch (error) {
    onError(error);
  } finally {
    await release();
  }
}
