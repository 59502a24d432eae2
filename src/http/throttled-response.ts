// Sends the response to a wrong secret when the auth throttle allows it. Until then, it keeps as little memory as possible,
// because anyone can send wrong secrets.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { AuthThrottle } from '../token/auth-throttle.ts';
import { onConnectionClose } from './connection.ts';
import type { HttpResponse } from './response.ts';

export interface ThrottleDependencies {
  readonly authThrottle: AuthThrottle;
  readonly clientAddressOf: (rawRequest: IncomingMessage) => string;
}

/** Connections that are closed after a delayed response, or at once because too many responses wait. */
const closingConnections = new WeakSet<Socket>();

/** If there is a delay, the connection is closed after the response. If too many responses wait, it is closed at once. */
export function sendThrottled(
  { authThrottle, clientAddressOf }: ThrottleDependencies,
  rawRequest: IncomingMessage,
  response: HttpResponse,
  send: () => void,
): void {
  const { socket } = rawRequest;
  const delayMs = authThrottle.countFailure(clientAddressOf(rawRequest));
  if (delayMs === 0) {
    send();
    return;
  }
  closingConnections.add(socket);
  if (delayMs === undefined) {
    socket.destroy(); // too many responses wait
    return;
  }
  dropRequest(rawRequest);
  response.headers.push('Connection', 'close');
  const cancelWait = authThrottle.wait(delayMs, send);
  onConnectionClose(socket, cancelWait);
}

/** Frees what Node would keep of the request until its response is sent. */
function dropRequest(rawRequest: IncomingMessage): void {
  rawRequest.resume(); // drops the body as it arrives
  rawRequest.url = '';
  rawRequest.headers = {};
  rawRequest.rawHeaders = [];
}

/**
 * Call it for a request that is pipelined behind other responses. If one of them is delayed, closes the connection and returns
 * true: otherwise the request would wait too, and take memory.
 */
export function closeIfThrottled(socket: Socket): boolean {
  const isClosing = closingConnections.has(socket);
  if (isClosing) socket.destroy();
  return isClosing;
}
