// A response as data, and the only function that writes one to a socket.
import type { ServerResponse } from 'node:http';

/** Alternating names and values: Node writes such a list faster than an object. */
export type HeaderList = string[];

export interface HttpResponse {
  readonly status: number;
  /** Not shared with another response: the sender appends to it. */
  readonly headers: HeaderList;
  readonly body: string | Buffer;
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

/** Compares weakly, as RFC 9110 requires for If-None-Match. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some(candidate => candidate.trim().replace(/^W\//, '') === etag);
}

/**
 * A client that reads nothing of a response for this long is disconnected, if the response does not fit into the system's
 * buffers. Node may notice after up to twice this time.
 */
const STALL_LIMIT_MS = 15_000;

/** Always sets Content-Length, so that HEAD returns it too. Node omits the body of a response to HEAD. */
export function send(rawResponse: ServerResponse, { status, headers, body }: HttpResponse): void {
  headers.push('X-Content-Type-Options', 'nosniff');
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  if (status !== 204 && status !== 304) headers.push('Content-Length', String(bytes));
  rawResponse.writeHead(status, headers);
  rawResponse.end(body);
  if (rawResponse.socket !== null && rawResponse.socket.writableLength > 0)
    rawResponse.setTimeout(STALL_LIMIT_MS);
}
