// Limits the connections of all listeners together, so that they leave file descriptors for the spool, the store and the threads.
// Without it, a process at its limit of descriptors cannot open files, and new clients wait until others disconnect.
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Descriptors for everything that is not a connection: about 25 after the start, and some for each thread and open file. */
const RESERVED_DESCRIPTORS = 48;
/** Even if the limit of descriptors is too low for it. */
const MIN_CONNECTIONS = 8;

export class ConnectionLimit {
  readonly #max: number;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(max: number = readMaxConnections()) {
    this.#max = max;
  }

  /** At the limit, idle connections of all listeners are closed. If none of them is idle, the new connection is closed. */
  apply(server: Server): void {
    this.#servers.push(server);
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      if (this.#sockets.size <= this.#max) return;
      for (const each of this.#servers) each.closeIdleConnections();
      const open = [...this.#sockets].filter(({ destroyed }) => !destroyed);
      if (open.length > this.#max) socket.resetAndDestroy();
    });
  }
}

/** Unlimited where the operating system does not tell the limit of descriptors in /proc. */
function readMaxConnections(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    if (limit !== undefined) return Math.max(MIN_CONNECTIONS, Number(limit) - RESERVED_DESCRIPTORS);
  } catch {
    // not Linux
  }
  return Number.POSITIVE_INFINITY;
}
