// Responds to requests that Node's HTTP parser rejects: malformed, far too large, or not received in time.
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import { MAX_URL_BYTES } from '../domain/limits.ts';
import { afterEarlierResponses, closeAfterWriting } from './connection.ts';
import { errorResponse } from './error-response.ts';
import { headersTooLarge, uriTooLong } from './request-limits.ts';
import { addHsts, type HttpResponse } from './response.ts';

type ParserError = NodeJS.ErrnoException & { rawPacket?: Buffer };

/** Connections with a parser error. More errors follow for everything that arrives later; only the first gets a response. */
const rejectedConnections = new WeakSet<Socket>();

export function isRejected(socket: Socket): boolean {
  return rejectedConnections.has(socket);
}

/**
 * Responds after the responses to earlier requests, and closes the connection. Writes to the socket, because Node has no response
 * object for such a request.
 */
export function respondToParserError(error: ParserError, socket: Socket): void {
  const isHttpError = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || error.code?.startsWith('HPE_') === true;
  if (!isHttpError) socket.destroy(); // an error of the connection, such as ECONNRESET
  if (socket.destroyed || isRejected(socket)) return;
  rejectedConnections.add(socket);
  const response = errorResponse(toDendroError(error));
  addHsts(response, socket);
  afterEarlierResponses(socket, () => closeAfterWriting(socket, formatResponse(response)));
}

function formatResponse({ status, headers: responseHeaders, body }: HttpResponse): string {
  const headers = [...responseHeaders, 'Content-Length', Buffer.byteLength(body), 'Connection', 'close'];
  const head = headers.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`;
}

function toDendroError(error: ParserError): DendroError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': {
      // A guess: the parser does not say which part is too long, and rawPacket has only the bytes that arrived last.
      const requestLineEnd = error.rawPacket?.indexOf('\r\n') ?? 0;
      if (requestLineEnd === -1 || requestLineEnd > MAX_URL_BYTES) return uriTooLong();
      return headersTooLarge();
    }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new DendroError('request_timeout', 'the request was not received within the time limit');
    case 'HPE_INVALID_URL':
      return new DendroError(
        'invalid_body',
        'the URL is not valid; percent-encode characters outside ASCII, such as %C3%BC for ü',
      );
    default:
      return new DendroError('invalid_body', 'the request is not well-formed HTTP');
  }
}
