// A listener: an HTTP server over a route table, with its limits and its graceful stop. Knows no route by itself.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DendroError, OperatorError } from '../errors.ts';
import type { Observe } from '../observe/event.ts';
import { asCallerError, errorReply } from './error-response.ts';
import { type Reply, send } from './reply.ts';
import { checkSizes, MAX_HEADER_BYTES, MAX_URL_BYTES, refuse } from './request-limits.ts';

const STOP_LIMIT_MS = 10_000;

/** A call, as a route sees it. */
export interface Call {
  readonly request: IncomingMessage;
  /** What follows a route's prefix, still encoded; empty for a route without one. */
  readonly rest: string;
  readonly parameters: URLSearchParams;
  /** Aborts when the caller leaves before the answer. */
  readonly signal: AbortSignal;
}

export interface Route {
  /** The whole path, or, ending in `/*`, a prefix followed by one more segment. */
  readonly path: string;
  readonly methods: readonly string[];
  answer(call: Call): Reply | Promise<Reply>;
}

export interface Listener {
  readonly url: string;
  /** Stops accepting, lets running calls finish (10 s at most). Closing twice is fine. */
  close(): Promise<void>;
}

export async function listen(
  name: 'public' | 'internal',
  address: { host: string; port: number },
  routes: readonly Route[],
  observe: Observe,
): Promise<Listener> {
  const server = createServer(
    {
      maxHeaderSize: MAX_URL_BYTES + MAX_HEADER_BYTES,
      headersTimeout: 20_000,
      requestTimeout: 60_000,
      keepAliveTimeout: 65_000, // longer than the usual 60 s of proxies, so that they close first
    },
    (request, response) => void answer(routes, request, response, observe),
  );
  server.on('clientError', refuse);
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(asListenError(error, name, address)));
    server.listen(address.port, address.host, resolve);
  });
  let closing: Promise<void> | undefined;
  return {
    url: urlOf(server.address() as AddressInfo),
    close: () => {
      closing ??= stop(server);
      return closing;
    },
  };
}

async function answer(
  routes: readonly Route[],
  request: IncomingMessage,
  response: ServerResponse,
  observe: Observe,
): Promise<void> {
  let path = '';
  const leave = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) leave.abort(new DendroError('unavailable', 'the caller has left'));
  });
  try {
    checkSizes(request);
    const target = splitTarget(request.url ?? '');
    const { route, rest } = findRoute(routes, target.path);
    path = route.path;
    if (!route.methods.includes(request.method ?? '')) {
      const allow = route.methods.join(', ');
      const refusal = new DendroError(
        'method_not_allowed',
        `${request.method} is not allowed here; allowed are ${allow}`,
      );
      return send(response, errorReply(refusal, { Allow: allow }));
    }
    const parameters = new URLSearchParams(target.query);
    send(response, await route.answer({ request, rest, parameters, signal: leave.signal }));
  } catch (error) {
    if (response.destroyed) return;
    const callerError = asCallerError(error);
    if (callerError.code === 'internal') observe({ type: 'request_failed', route: path, error });
    send(response, errorReply(callerError));
  }
}

/** Splits `/path?query`; a proxy may send the absolute form, `http://host/path?query`. */
function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  return mark === -1
    ? { path: local, query: '' }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

function findRoute(routes: readonly Route[], path: string): { route: Route; rest: string } {
  for (const route of routes) {
    if (route.path === path) return { route, rest: '' };
    if (!route.path.endsWith('/*')) continue;
    const prefix = route.path.slice(0, -1);
    const rest = path.slice(prefix.length);
    if (path.startsWith(prefix) && rest !== '' && !rest.includes('/')) return { route, rest };
  }
  throw new DendroError('not_found', 'there is nothing at this path; /openapi.json lists what there is');
}

function asListenError(
  error: NodeJS.ErrnoException,
  name: string,
  { host, port }: { host: string; port: number },
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

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function stop(server: Server): Promise<void> {
  return new Promise(resolve => {
    const limit = setTimeout(() => server.closeAllConnections(), STOP_LIMIT_MS);
    // A connection that was answering falls idle when it is done, and would stay open as long as its keep-alive.
    const sweep = setInterval(() => server.closeIdleConnections(), 20);
    server.close(() => {
      clearTimeout(limit);
      clearInterval(sweep);
      resolve();
    });
  });
}
