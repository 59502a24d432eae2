// Checks before routing: length of the URL, size of the headers, the header Host, and no Transfer-Encoding in HTTP/1.0.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import { MAX_HEADER_BYTES, MAX_URL_BYTES } from '../domain/limits.ts';

/**
 * Node drops the headers beyond this number. checkRequest() counts at least 5 bytes for each header, so a request with this many
 * exceeds MAX_HEADER_BYTES anyway.
 */
export const MAX_HEADERS = MAX_HEADER_BYTES / 4;

/** The colon, the space and the line break of a header line. */
const SEPARATOR_BYTES = 4;

export function checkRequest(rawRequest: IncomingMessage): void {
  if (rawRequest.headers.host === undefined && rawRequest.httpVersion === '1.1')
    throw new DendroError('invalid_body', 'an HTTP/1.1 request must have the header Host');
  if (hasAmbiguousEnd(rawRequest)) throw new DendroError('invalid_body', 'Transfer-Encoding needs HTTP/1.1');
  if ((rawRequest.url ?? '').length > MAX_URL_BYTES) throw uriTooLong();
  let hostHeaders = 0;
  const { rawHeaders } = rawRequest; // alternating names and values
  let headerBytes = (rawHeaders.length / 2) * SEPARATOR_BYTES;
  for (let index = 0; index < rawHeaders.length; index++) {
    const nameOrValue = rawHeaders[index] ?? '';
    headerBytes += nameOrValue.length;
    const isName = index % 2 === 0;
    if (isName && nameOrValue.length === 4 && nameOrValue.toLowerCase() === 'host') hostHeaders++;
  }
  if (hostHeaders > 1) throw new DendroError('invalid_body', 'a request must have only one header Host');
  if (headerBytes > MAX_HEADER_BYTES) throw headersTooLarge();
}

/** Whether the body has an ambiguous end: only HTTP/1.1 has Transfer-Encoding (RFC 9112, section 6.1). */
export function hasAmbiguousEnd({ httpVersion, headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined && httpVersion !== '1.1';
}

export function headersTooLarge(): DendroError {
  return new DendroError(
    'headers_too_large',
    `the headers are too large; the limit is ${MAX_HEADER_BYTES} bytes`,
  );
}

export function uriTooLong(): DendroError {
  return new DendroError('uri_too_long', `the URL is too long; the limit is ${MAX_URL_BYTES} bytes`);
}
