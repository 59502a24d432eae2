// CORS: lets pages of the configured web origins call the public listener. Off unless configured.
import type { IncomingMessage } from 'node:http';
import { type HttpResponse, toHeaderList } from './response.ts';

/** The response headers that a page's scripts may read. */
const EXPOSED_HEADERS =
  'Age, Cache-Status, Date, Dendro-Clipped, Dendro-Data-Through, Dendro-Ignored, Dendro-Missing-Parts, Dendro-Next-Cursor, Dendro-Request-Id, ETag, Retry-After, Server-Timing';

export function addCors(
  { headers }: HttpResponse,
  allowedOrigins: readonly string[],
  { headers: { origin } }: IncomingMessage,
): void {
  const varyIndex = headers.indexOf('Vary');
  if (varyIndex === -1) headers.push('Vary', 'Origin');
  else headers[varyIndex + 1] += ', Origin';
  if (origin !== undefined && allowedOrigins.includes(origin))
    headers.push('Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

/** The response to a CORS preflight: the OPTIONS request that a browser sends before a request with a token. */
export function corsPreflightResponse(methods: readonly string[]): HttpResponse {
  return {
    status: 204,
    headers: toHeaderList({
      'Access-Control-Allow-Methods': methods.join(', '),
      'Access-Control-Allow-Headers': 'X-API-KEY, Authorization, Content-Type, Cache-Control, If-None-Match',
      'Access-Control-Max-Age': '600',
    }),
    body: '',
  };
}
