// Lets pages of the configured web origins call, and nobody else's. Off unless configured.
import type { IncomingMessage } from 'node:http';
import { type HttpResponse, listHeaders } from './response.ts';

/** What a page may read of an answer besides its body. */
const EXPOSED_HEADERS =
  'Age, Cache-Status, Dendro-Clipped, Dendro-Data-Through, Dendro-Request-Id, ETag, Retry-After, Server-Timing';

export function addCors(
  { headers }: HttpResponse,
  origins: readonly string[],
  { headers: { origin } }: IncomingMessage,
): void {
  const vary = headers.indexOf('Vary');
  if (vary === -1) headers.push('Vary', 'Origin');
  else headers[vary + 1] += ', Origin';
  if (origin !== undefined && origins.includes(origin))
    headers.push('Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

/** What a browser asks before it sends a token. */
export function corsPreflightResponse(methods: readonly string[]): HttpResponse {
  return {
    status: 204,
    headers: listHeaders({
      'Access-Control-Allow-Methods': methods.join(', '),
      'Access-Control-Allow-Headers': 'X-API-KEY, Authorization, Content-Type, Cache-Control, If-None-Match',
      'Access-Control-Max-Age': '600',
    }),
    body: '',
  };
}
