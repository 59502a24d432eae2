// Checks before routing: length of the URL, size of the headers, and requests that Node's HTTP parser rejects.
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import { errorResponse } from './error-response.ts';

export const MAX_URL_BYTES = 8 * 1024;
export const MAX_HEADER_BYTES = 16 * 1024;

export function checkRequest(rawRequest: IncomingMessage): void {
  if (rawRequest.headers.host === undefined && rawRequest.httpVersion === '1.1')
    throw new DendroError('invalid_body', 'an HTTP/1.1 request must have the header Host');
  if ((rawRequest.url ?? '').length > MAX_URL_BYTES) throw uriTooLong();
  let headerBytes = 0;
  let hostHeaders = 0;
  const { rawHeaders } = rawRequest; // alternating names and values
  for (let index = 0; index < rawHeaders.length; index++) {
    const nameOrValue = rawHeaders[index] ?? '';
    headerBytes += nameOrValue.length;
    const isName = index % 2 === 0;
    if (isName && nameOrValue.length === 4 && nameOrValue.toLowerCase() === 'host') hostHeaders++;
  }
  if (hostHeaders > 1) throw new DendroError('invalid_body', 'a request must have only one header Host');
  if (headerBytes > MAX_HEADER_BYTES) throw headersTooLarge();
}

function headersTooLarge(): DendroError {
  return new DendroError(
    'headers_too_large',
    `the headers are too large; the limit is ${MAX_HEADER_BYTES} bytes`,
  );
}

function uriTooLong(): DendroError {
  return new DendroError('uri_too_long', `the URL is too long; the limit is ${MAX_URL_BYTES} bytes`);
}

/**
 * Responds to a request that the HTTP parser rejected, and closes the connection. Writes to the socket, because
 * Node has no response object for such a request.
 */
export function respondToParserError(
  error: NodeJS.ErrnoException & { rawPacket?: Buffer },
  socket: Socket,
): void {
  const isHttp = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || error.code?.startsWith('HPE_') === true;
  if (!socket.writable || !isHttp) {
    socket.destroy();
    return;
  }
  const { status, headers: errorHeaders, body } = errorResponse(toParserError(error));
  const headers = [...errorHeaders, 'Content-Length', Buffer.byteLength(body), 'Connection', 'close'];
  const head = headers.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`);
}

function toParserError(error: NodeJS.ErrnoException & { rawPacket?: Buffer }): DendroError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': {
      const requestLineEnd = error.rawPacket?.indexOf('\r\n') ?? 0;
      if (requestLineEnd === -1 || requestLineEnd > MAX_URL_BYTES) return uriTooLong();
      return headersTooLarge();
    }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new DendroError('request_timeout', 'the request was not received within the time limit');
    default:
      return new DendroError('invalid_body', 'the request is not well-formed HTTP');
  }
}
