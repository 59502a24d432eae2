// A listener: an HTTP server over a route table, with its limits and its graceful stop. Knows no route by itself.
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { OperatorError } from '../domain/errors.ts';
import { handleRequest, type RequestHandling } from './handle-request.ts';
import { MAX_HEADER_BYTES, MAX_URL_BYTES, refuse } from './request-limits.ts';
import { type Route, Router } from './router.ts';
import { readTlsPair, type TlsFiles } from './tls.ts';

export interface ListenerOptions extends Omit<RequestHandling, 'router'> {
  readonly routes: readonly Route[];
  readonly name: 'public' | 'internal';
  readonly address: { readonly host: string; readonly port: number };
  readonly tls: TlsFiles | undefined;
}

export interface Listener {
  readonly url: string;
  /** Stops accepting, lets running calls finish (10 s at most). Closing twice is fine. */
  close(): Promise<void>;
}

const HEADERS_TIMEOUT_MS = 15_000;

const SERVER_OPTIONS: ServerOptions = {
  // Well above our own limits, so that request-limits.ts can say which of them was passed.
  maxHeaderSize: 8 * (MAX_URL_BYTES + MAX_HEADER_BYTES),
  requireHostHeader: false, // request-limits.ts asks for it, and answers in our own words
  headersTimeout: HEADERS_TIMEOUT_MS,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000, // how soon the two limits above are noticed
  keepAliveTimeout: 65_000, // longer than the usual 60 s of proxies, so that they close first
};

const STOP_LIMIT_MS = 10_000;

export async function listen(options: ListenerOptions): Promise<Listener> {
  const answering = { ...options, router: new Router(options.routes) };
  const onRequest: RequestListener = (request, response) => handleRequest(answering, request, response);
  const server = makeServer(options, onRequest);
  server.on('checkExpectation', onRequest); // an expectation that nobody knows need not be met
  server.on('clientError', refuse);
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(asListenError(error, options)));
    server.listen(options.address.port, options.address.host, resolve);
  });
  const sockets = trackSockets(server);
  let closing: Promise<void> | undefined;
  return {
    url: urlOf(options.tls === undefined ? 'http' : 'https', server.address() as AddressInfo),
    close: () => {
      closing ??= stop(server, sockets);
      return closing;
    },
  };
}

function makeServer({ tls }: ListenerOptions, onRequest: RequestListener): Server {
  if (tls === undefined) return createServer(SERVER_OPTIONS, onRequest);
  const options = {
    ...readTlsPair(tls),
    minVersion: 'TLSv1.2',
    handshakeTimeout: HEADERS_TIMEOUT_MS,
  } as const;
  return createTlsServer({ ...SERVER_OPTIONS, ...options }, onRequest);
}

function asListenError(
  error: NodeJS.ErrnoException,
  { name, address: { host, port } }: ListenerOptions,
): Error {
  const reasons: Record<string, string> = {
    EADDRINUSE: 'the port is taken by another program',
    EACCES: 'this user may not use that port',
    EADDRNOTAVAIL: 'this machine does not have that address',
    ENOTFOUND: 'there is no such host',
  };
  return new OperatorError(
    `the ${name} listener cannot use ${host}:${port}: ${reasons[error.code ?? ''] ?? error.message}`,
  );
}

function urlOf(protocol: string, { address, family, port }: AddressInfo): string {
  return `${protocol}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

/** Those too that are still shaking hands for TLS, which the server does not count among its connections. */
function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

function stop(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  return new Promise(resolve => {
    const limit = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, STOP_LIMIT_MS);
    // A connection that was answering falls idle when it is done, and would stay open as long as its keep-alive.
    const sweep = setInterval(() => server.closeIdleConnections(), 20);
    server.close(() => {
      clearTimeout(limit);
      clearInterval(sweep);
      resolve();
    });
  });
}
