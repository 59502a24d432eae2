// The connections of all listeners. Limits their number, so that they leave file descriptors for the spool, the store and the threads.
// Without this limit, a process that has used up its file descriptors can neither open files nor serve new clients.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { MIN_CONNECTIONS, RESERVED_DESCRIPTORS } from '../domain/limits.ts';
import { readDescriptorLimit } from '../system/descriptor-limit.ts';

export class ConnectionLimit {
  readonly #limit: number;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  /** How many file descriptors the parts of the store use. */
  reserved = () => 0;

  constructor(limit: number = Math.max(MIN_CONNECTIONS, readDescriptorLimit() - RESERVED_DESCRIPTORS)) {
    this.#limit = limit;
  }

  get #max(): number {
    return Math.max(Math.min(MIN_CONNECTIONS, this.#limit), this.#limit - this.reserved());
  }

  /** If a new connection exceeds the limit, the idle ones of all listeners are closed. If none is idle, the new one is closed. */
  apply(server: Server): void {
    this.#servers.push(server);
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      if (this.#sockets.size <= this.#max) return;
      for (const each of this.#servers) each.closeIdleConnections();
      const openSockets = [...this.#sockets].filter(({ destroyed }) => !destroyed);
      if (openSockets.length > this.#max) socket.resetAndDestroy();
    });
  }

  /** Also those in their TLS handshake, which a server does not count among its connections. */
  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
