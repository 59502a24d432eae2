// Limits on what arrives before it is a call: the URL, the headers, and what the HTTP parser does not understand.
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import { errorResponse } from './error-response.ts';

export const MAX_URL_BYTES = 8 * 1024;
export const MAX_HEADER_BYTES = 16 * 1024;

export function checkRequest(request: IncomingMessage): void {
  if (request.headers.host === undefined && request.httpVersion === '1.1')
    throw new DendroError('invalid_body', 'an HTTP/1.1 request needs the header Host');
  if ((request.url ?? '').length > MAX_URL_BYTES) throw uriTooLong();
  let headerBytes = 0;
  let hosts = 0;
  const { rawHeaders } = request; // names and values in turn
  for (let index = 0; index < rawHeaders.length; index++) {
    const part = rawHeaders[index] ?? '';
    headerBytes += part.length;
    if (index % 2 === 0 && part.length === 4 && part.toLowerCase() === 'host') hosts++;
  }
  if (hosts > 1) throw new DendroError('invalid_body', 'a request has one header Host');
  if (headerBytes > MAX_HEADER_BYTES) throw headersTooLarge();
}

function headersTooLarge(): DendroError {
  return new DendroError('headers_too_large', `the headers are larger than ${MAX_HEADER_BYTES} bytes`);
}

function uriTooLong(): DendroError {
  return new DendroError('uri_too_long', `the URL is longer than ${MAX_URL_BYTES} bytes`);
}

/** What the HTTP parser refuses never becomes a call; it is answered here, by hand, and the connection closed. */
export function refuse(error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket: Socket): void {
  const isHttp = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || error.code?.startsWith('HPE_') === true;
  if (!socket.writable || !isHttp) {
    socket.destroy();
    return;
  }
  const reply = errorResponse(asParserError(error));
  const headers = [...reply.headers, 'Content-Length', Buffer.byteLength(reply.body), 'Connection', 'close'];
  const head = headers.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
  socket.end(`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n${head}\r\n${reply.body}`);
}

function asParserError(error: NodeJS.ErrnoException & { rawPacket?: Buffer }): DendroError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': {
      const requestLine = error.rawPacket?.indexOf('\r\n') ?? 0;
      if (requestLine === -1 || requestLine > MAX_URL_BYTES) return uriTooLong();
      return headersTooLarge();
    }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new DendroError('request_timeout', 'the request did not arrive in time');
    default:
      return new DendroError('invalid_body', 'this is not a well-formed HTTP request');
  }
}
