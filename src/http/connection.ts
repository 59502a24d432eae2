// State of a connection that outlives one request: the order of the responses, the delay of responses to wrong secrets, and how the
// connection is closed.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { AuthThrottle } from '../token/auth-throttle.ts';
import type { HttpResponse } from './response.ts';

/** The responses of each connection that are not completely sent, in the order of their requests. */
const unfinishedResponses = new WeakMap<Socket, Set<ServerResponse>>();

/**
 * Tracks a response until it is sent, so that `afterEarlierResponses` waits for it. Call it in the order of the requests. Not
 * needed for a response that is already completely written to the socket: later writes follow it anyway.
 */
export function trackUnfinished(socket: Socket, rawResponse: ServerResponse): void {
  const unfinished = unfinishedResponses.get(socket) ?? new Set();
  unfinishedResponses.set(socket, unfinished.add(rawResponse));
  rawResponse.once('close', () => unfinished.delete(rawResponse));
}

/** Calls back when the responses to all completely received requests of the connection are sent; at once if they already are. */
export function afterEarlierResponses(socket: Socket, callback: () => void): void {
  const unfinished = [...(unfinishedResponses.get(socket) ?? [])];
  const last = unfinished.findLast(({ req }) => req.complete);
  if (last === undefined) callback();
  else last.once('close', callback);
}

/**
 * Calls back when the connection closes. A pipelined response that waits behind another one emits no `close`, so the connection
 * itself is watched. The returned function removes the callback.
 */
export function onConnectionClose(socket: Socket, callback: () => void): () => void {
  socket.setMaxListeners(0); // a connection can have any number of pipelined requests
  socket.once('close', callback);
  return () => socket.off('close', callback);
}

/**
 * Reports once whether a response is completely written to its connection. If the connection closes earlier, the client usually
 * retries the request. Call it before the response is sent.
 */
export function watchDelivery(
  socket: Socket,
  rawResponse: ServerResponse,
  report: (isDelivered: boolean) => void,
): void {
  if (rawResponse.destroyed || hasDisconnected(socket)) {
    report(false);
    return;
  }
  const cancel = onConnectionClose(socket, () => {
    rawResponse.off('finish', onFinish);
    report(false);
  });
  const onFinish = () => {
    cancel();
    // Node also emits `finish` if the connection was destroyed before the last byte was written.
    report(!hasDisconnected(socket));
  };
  rawResponse.prependOnceListener('finish', onFinish); // before Node's own listener, which may close the connection
}

/** Checks both directions: Node closes its side as soon as the client has closed its own. */
function hasDisconnected(socket: Socket): boolean {
  return socket.destroyed || socket.readableEnded || socket.writableEnded;
}

/** How long a connection stays half-open after its last response, so that the client can read that response. */
const LINGER_MS = 2_000;

/**
 * Writes the last response of a connection, then closes the connection, even if the client never closes its side. Until then,
 * Node reads and drops what the client still sends: closing a socket with unread bytes resets the connection, and the client may
 * lose the response.
 */
export function closeAfterWriting(socket: Socket, bytes: string): void {
  if (!socket.writable) return; // Node is closing it: the response before had `Connection: close`, or the client has left
  socket.end(bytes);
  socket.resume();
  const timeout = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timeout));
}

/** Connections that are closed after a delayed response, or at once because too many responses wait. */
const closingConnections = new WeakSet<Socket>();

/**
 * Sends the response to a wrong secret when the auth throttle allows it. If there is a delay, the connection is closed after the
 * response. If too many responses wait, it is closed at once. Until then, it keeps as little memory as possible, because anyone can
 * send wrong secrets.
 */
export function sendThrottled(
  authThrottle: AuthThrottle,
  address: string,
  rawRequest: IncomingMessage,
  response: HttpResponse,
  send: () => void,
): void {
  const { socket } = rawRequest;
  const delayMs = authThrottle.countFailure(address);
  if (delayMs === 0) {
    send();
    return;
  }
  closingConnections.add(socket);
  if (delayMs === undefined) {
    socket.destroy(); // too many responses wait
    return;
  }
  rawRequest.resume(); // drops the body as it arrives
  Object.assign(rawRequest, { url: '', headers: {}, rawHeaders: [] }); // Node keeps the request until its response is sent
  response.headers.push('Connection', 'close');
  onConnectionClose(socket, authThrottle.wait(delayMs, send));
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
