// An answer as data, and the one place that writes it to a socket.
import type { ServerResponse } from 'node:http';

/** Names and values in turn, which Node writes faster than an object. */
export type HeaderList = string[];

export interface HttpResponse {
  readonly status: number;
  /** Its own, for whoever sends it to add to. */
  readonly headers: HeaderList;
  readonly body: string | Buffer;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonResponse(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): HttpResponse {
  const list = listHeaders({ 'Content-Type': JSON_TYPE, ...headers });
  return { status, headers: list, body: JSON.stringify(body) };
}

export function listHeaders(headers: Readonly<Record<string, string>>): HeaderList {
  return Object.entries(headers).flat();
}

/** So long, and twice that at most, a caller may take nothing of an answer that does not fit into the system's buffers. */
const STALL_LIMIT_MS = 15_000;

/** Content-Length is always set, so HEAD tells it too; Node leaves the body out of an answer to HEAD. */
export function send(response: ServerResponse, { status, headers, body }: HttpResponse): void {
  headers.push('X-Content-Type-Options', 'nosniff');
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  if (status !== 204 && status !== 304) headers.push('Content-Length', String(bytes));
  response.writeHead(status, headers);
  response.end(body);
  if (response.socket !== null && response.socket.writableLength > 0) response.setTimeout(STALL_LIMIT_MS);
}
