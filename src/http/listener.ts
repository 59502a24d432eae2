// A listener: an HTTP server for a list of routes, with timeouts and graceful shutdown. It defines no routes.
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, isIP, type Socket } from 'node:net';
import { OperatorError } from '../domain/errors.ts';
import {
  HEADERS_TIMEOUT_MS,
  MAX_HEADER_BYTES,
  MAX_URL_BYTES,
  SHUTDOWN_TIMEOUT_MS,
} from '../domain/limits.ts';
import type { ConnectionLimit } from './connection-limit.ts';
import { handleRequest, type RequestDependencies } from './handle-request.ts';
import { respondToParserError } from './parser-error.ts';
import { MAX_HEADERS } from './request-limits.ts';
import { readTlsPair, type TlsFiles } from './tls.ts';

export interface ListenerOptions extends Omit<RequestDependencies, 'hitRoute'> {
  readonly name: 'public' | 'internal';
  readonly address: { readonly host: string; readonly port: number };
  readonly tls: TlsFiles | undefined;
  readonly connectionLimit: ConnectionLimit;
}

export interface Listener {
  readonly url: string;
  /** Shuts down gracefully: accepts no more connections and waits up to 10 s for running requests. Closing twice is safe. */
  close(): Promise<void>;
}

const SERVER_OPTIONS: ServerOptions = {
  // Well above the limits of request-limits.ts, so that its error can say which one was exceeded.
  maxHeaderSize: 8 * (MAX_URL_BYTES + MAX_HEADER_BYTES),
  requireHostHeader: false, // request-limits.ts checks the header, so that the response has Dendro's error body
  headersTimeout: HEADERS_TIMEOUT_MS,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000, // how often Node checks the two timeouts above
  keepAliveTimeout: 65_000, // longer than the usual 60 s of proxies, so that the proxy closes first
};

export async function listen(options: ListenerOptions): Promise<Listener> {
  const hitRoute = options.routes.find(({ cacheHit }) => cacheHit !== undefined);
  const dependencies = { ...options, hitRoute };
  const onRequest: RequestListener = (rawRequest, rawResponse) =>
    handleRequest(dependencies, rawRequest, rawResponse);
  const server = createHttpServer(options, onRequest);
  server.maxHeadersCount = MAX_HEADERS;
  server.on('checkExpectation', onRequest); // an unknown `Expect` header is ignored
  server.on('clientError', respondToParserError);
  server.on(options.tls === undefined ? 'connection' : 'secureConnection', keepRemoteAddress);
  options.connectionLimit.apply(server);
  await bind(server, options);
  let closing: Promise<void> | undefined;
  return {
    url: urlOf(options, server.address() as AddressInfo),
    close: () => {
      closing ??= shutDown(server, options.connectionLimit);
      return closing;
    },
  };
}

/** Throws the error of `listen` if the address cannot be used. Uses it for a moment, without accepting a request. */
export async function tryToListen(options: Pick<ListenerOptions, 'name' | 'address'>): Promise<void> {
  const server = createServer();
  await bind(server, options);
  await new Promise(resolve => server.close(resolve));
}

function bind(server: Server, options: Pick<ListenerOptions, 'name' | 'address'>): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(toListenError(error, options)));
    server.listen(options.address.port, options.address.host, resolve);
  });
}

function createHttpServer({ tls }: ListenerOptions, onRequest: RequestListener): Server {
  if (tls === undefined) return createServer(SERVER_OPTIONS, onRequest);
  const options = {
    ...readTlsPair(tls),
    minVersion: 'TLSv1.2',
    handshakeTimeout: HEADERS_TIMEOUT_MS,
  } as const;
  return createTlsServer({ ...SERVER_OPTIONS, ...options }, onRequest);
}

function toListenError(
  error: NodeJS.ErrnoException,
  { name, address: { host, port } }: Pick<ListenerOptions, 'name' | 'address'>,
): Error {
  const prefix = name === 'internal' ? 'internal-' : '';
  const reasons: Record<string, string> = {
    EADDRINUSE: `the port is in use by another program; choose another one with --${prefix}port`,
    EACCES: `this user is not allowed to use this port; choose another one with --${prefix}port`,
    EADDRNOTAVAIL: `this machine does not have this address; choose another one with --${prefix}host`,
    ENOTFOUND: 'unknown host',
  };
  return new OperatorError(
    `the ${name} listener cannot listen on ${host}:${port}: ${reasons[error.code ?? ''] ?? error.message}`,
    { cause: error },
  );
}

/** With the host name of the configuration, because a certificate has it. */
function urlOf({ tls, address: { host } }: ListenerOptions, { address, family, port }: AddressInfo): string {
  const name = isIP(host) === 0 ? host : family === 'IPv6' ? `[${address}]` : address;
  return `${tls === undefined ? 'http' : 'https'}://${name}:${port}`;
}

/** Reads the address once, so that Node remembers it. A first read after the client has disconnected would find none. */
function keepRemoteAddress(socket: Socket): void {
  void socket.remoteAddress;
}

/** All listeners close at the same time, so the timeout ends the connections of all. */
function shutDown(server: Server, connectionLimit: ConnectionLimit): Promise<void> {
  return new Promise(resolve => {
    const timeout = setTimeout(() => connectionLimit.destroyAll(), SHUTDOWN_TIMEOUT_MS);
    // A connection becomes idle after its response, and would stay open until the keep-alive timeout.
    const closeIdle = setInterval(() => server.closeIdleConnections(), 20);
    server.close(() => {
      clearTimeout(timeout);
      clearInterval(closeIdle);
      resolve();
    });
  });
}
