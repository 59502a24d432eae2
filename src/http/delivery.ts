// Finds out whether a response was completely written to its connection. If the connection closes earlier, the client usually
// retries the request.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { onConnectionClose } from './connection.ts';

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
  const cancel = onConnectionClose(socket, () => report(false));
  // Runs before Node's own listener, which may close the connection.
  rawResponse.prependOnceListener('finish', () => {
    if (!cancel()) return; // the connection closed before, and `report` was called
    // Node also emits `finish` if the connection was destroyed before the last byte was written.
    report(!hasDisconnected(socket));
  });
}

/** Checks both directions: Node closes its side as soon as the client has closed its own. */
function hasDisconnected(socket: Socket): boolean {
  return socket.destroyed || socket.readableEnded || socket.writableEnded;
}
