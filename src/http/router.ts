// A request as the routes see it, and the route that a request target leads to.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { CACHE_OUTCOMES } from '../observe/event.ts';
import type { CacheHit } from './cache-hit.ts';
import { onConnectionClose } from './connection.ts';
import type { HttpResponse } from './response.ts';

export interface Route {
  /** An exact path, or a prefix that ends in `/*` and matches one more segment. */
  readonly path: string;
  readonly methods: readonly string[];
  handle(request: HttpRequest): Promise<HttpResponse>;
  /** The response to a request whose result is cached and ready to be sent; undefined: `handle` responds. */
  readonly cacheHit?: (rawRequest: IncomingMessage, startedAt: number) => CacheHit | undefined;
  /** The response to an error, for a route with an error format of its own. */
  readonly errorResponse?: (error: DendroError, rawRequest: IncomingMessage) => HttpResponse;
}

/** Throws `not_found` if no route has the target's path. `pathParameter` is the decoded segment that `*` of the path matches. */
export function findRoute(
  routes: readonly Route[],
  target: string,
): { readonly route: Route; readonly pathParameter: string; readonly queryString: string } {
  const { path, queryString } = splitTarget(target);
  for (const route of routes) {
    if (route.path === path) return { route, pathParameter: '', queryString };
    if (!route.path.endsWith('/*')) continue;
    const prefix = route.path.slice(0, -1);
    const segment = path.slice(prefix.length);
    if (path.startsWith(prefix) && segment !== '' && !segment.includes('/'))
      return { route, pathParameter: decode(segment), queryString };
  }
  throw new DendroError('not_found', describeUnknownPath(path));
}

const OTHER_LISTENER = [
  {
    paths: /^\/(api\/logs|v1\/logs|api\/admin\/(erase|backup|alerts(\/[^/]+)?)|metrics)$/,
    is: 'internal',
    flag: '--internal-port, 4001',
  },
  {
    paths: /^\/(api\/endpoints(\/(query|explain)\/[^/]+)?|api\/alerts|openapi\.json)?$/,
    is: 'public',
    flag: '--port, 4000',
  },
];

/** A listener has the routes of the other one only if both have the same port. */
function describeUnknownPath(path: string): string {
  const other = OTHER_LISTENER.find(({ paths }) => paths.test(path));
  return other === undefined
    ? 'unknown path; /openapi.json of the public listener lists the paths'
    : `${path} is a path of the ${other.is} listener, which has another port (${other.flag} by default)`;
}

/** Splits the origin form, `/path?query`. A proxy may send the absolute form, `http://host/path?query` (RFC 9112, section 3.2). */
function splitTarget(target: string): { path: string; queryString: string } {
  const originForm = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const questionMark = originForm.indexOf('?');
  return questionMark === -1
    ? { path: originForm, queryString: '' }
    : { path: originForm.slice(0, questionMark), queryString: originForm.slice(questionMark + 1) };
}

/** A segment that cannot be decoded stays as it is: it matches no name. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The request that a route's handler receives. Some of its values are created on first use. */
export class HttpRequest {
  /** Node's own request: headers, socket, body. */
  readonly raw: IncomingMessage;
  readonly pathParameter: string;
  /** The part of the target after the question mark, not decoded. */
  readonly queryString: string;
  /** When the request arrived: milliseconds, as from performance.now(). */
  readonly startedAt: number;
  /** For metrics and logs: the name of the endpoint. Only the routes for queries and explanations set it. */
  endpoint: string | undefined = undefined;
  /** For metrics and logs: how the result was obtained. Set with a result or an explanation; otherwise `none`. */
  outcome: (typeof CACHE_OUTCOMES)[number] = 'none';
  readonly #rawResponse: ServerResponse;
  #parameters: URLSearchParams | undefined;
  #signal: AbortSignal | undefined;
  #id: string | undefined;

  constructor(
    rawRequest: IncomingMessage,
    rawResponse: ServerResponse,
    startedAt: number,
    { pathParameter, queryString }: Pick<ReturnType<typeof findRoute>, 'pathParameter' | 'queryString'>,
  ) {
    this.raw = rawRequest;
    this.#rawResponse = rawResponse;
    this.startedAt = startedAt;
    this.pathParameter = pathParameter;
    this.queryString = queryString;
  }

  /** The parsed query string. */
  get parameters(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.queryString);
    return this.#parameters;
  }

  /** Identifies the request in logs. Never taken from the request: a client could put anything into the logs, even a token. */
  get id(): string {
    this.#id ??= randomUUID();
    return this.#id;
  }

  /** Undefined if `id` was never read. The response then has no Dendro-Request-Id. */
  get usedId(): string | undefined {
    return this.#id;
  }

  /** Aborts when the client disconnects before the response is complete. */
  get signal(): AbortSignal {
    this.#signal ??= createDisconnectSignal(this.raw, this.#rawResponse);
    return this.#signal;
  }
}

function createDisconnectSignal({ socket }: IncomingMessage, rawResponse: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = () => {
    if (!rawResponse.writableFinished)
      controller.abort(new DendroError('unavailable', 'the client disconnected'));
  };
  const cancel = onConnectionClose(socket, abort);
  rawResponse.once('close', () => {
    cancel();
    abort();
  });
  if (rawResponse.destroyed || socket.destroyed) abort();
  return controller.signal;
}
