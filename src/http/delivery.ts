// Finds out whether a response was completely written to its connection. A client that lost its connection before that retries
// the request.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Call it before the response is sent. Calls `report` exactly once. */
export function watchDelivery(
  { socket }: IncomingMessage,
  rawResponse: ServerResponse,
  report: (isDelivered: boolean) => void,
): void {
  if (rawResponse.destroyed || hasDisconnected(socket)) {
    report(false);
    return;
  }
  const callbacks = closeCallbacksOf(socket);
  const onClose = () => report(false);
  callbacks.add(onClose);
  // Before Node's own listener, which may close the connection.
  rawResponse.prependOnceListener('finish', () => {
    if (!callbacks.delete(onClose)) return;
    // Node emits `finish` too if the connection was destroyed before the last byte was written.
    report(!hasDisconnected(socket));
  });
}

/** Node closes its side as soon as the client has closed its own. */
function hasDisconnected(socket: Socket): boolean {
  return socket.destroyed || socket.readableEnded || socket.writableEnded;
}

const closeCallbacks = new WeakMap<Socket, Set<() => void>>();

/**
 * The functions to call when a connection closes. A pipelined response that waits behind another one emits no `close`, so the
 * connection itself is watched, with one listener for all of its responses.
 */
function closeCallbacksOf(socket: Socket): Set<() => void> {
  const existing = closeCallbacks.get(socket);
  if (existing !== undefined) return existing;
  const callbacks = new Set<() => void>();
  closeCallbacks.set(socket, callbacks);
  socket.once('close', () => {
    for (const callback of callbacks) callback();
    callbacks.clear();
  });
  return callbacks;
}
