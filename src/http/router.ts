// The request and route types, and the router, which finds the route for a request target.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { CACHE_OUTCOMES } from '../observe/event.ts';
import type { HttpResponse } from './response.ts';

/** The request that a route's handler receives. */
export interface HttpRequest {
  /** Node's own request: headers, socket, body. */
  readonly raw: IncomingMessage;
  /** The path segment that `*` of the route's path matched, decoded; empty if the route's path has no `*`. */
  readonly pathParameter: string;
  /** The part of the target after the question mark, not decoded. */
  readonly queryString: string;
  /** The whole request target: path and query string, not decoded. */
  readonly target: string;
  /** The parsed query string. */
  readonly parameters: URLSearchParams;
  /** Identifies the request in logs. Created when first read. If it was never read, the response has no Dendro-Request-Id. */
  readonly id: string;
  /** Aborts when the client disconnects before the response is complete. */
  readonly signal: AbortSignal;
  /** When the request arrived: milliseconds, as from performance.now(). */
  readonly startedAt: number;
  /** For metrics and logs: the name of the endpoint. Only the routes for queries and explanations set it. */
  endpoint: string | undefined;
  /** For metrics and logs: how the result was obtained. Set with a result or an explanation; otherwise `none`. */
  outcome: (typeof CACHE_OUTCOMES)[number];
}

export interface Route {
  /** An exact path, or a prefix that ends in `/*` and matches one more segment. */
  readonly path: string;
  readonly methods: readonly string[];
  handle(request: HttpRequest): HttpResponse | Promise<HttpResponse>;
  /** The response to an error, for a route with an error format of its own. */
  readonly errorResponse?: (error: DendroError, rawRequest: IncomingMessage) => HttpResponse;
}

export interface RouteMatch extends Pick<HttpRequest, 'pathParameter' | 'queryString' | 'target'> {
  readonly route: Route;
}

/** In characters. Longer targets are not memoized. */
const MAX_MEMOIZED_LENGTH = 1_000;
const MAX_MEMOIZED = 2_000;

/**
 * Memoizes matches by target: dashboards repeat the same targets, and parsing one takes a measurable share of
 * the time of a cache hit.
 */
export class Router {
  readonly #routes: readonly Route[];
  readonly #matches = new Map<string, RouteMatch>();

  constructor(routes: readonly Route[]) {
    this.#routes = routes;
  }

  /** Throws `not_found` if no route has the target's path. */
  find(target: string): RouteMatch {
    const memoized = this.#matches.get(target);
    if (memoized !== undefined) return memoized;
    const { path, queryString } = splitTarget(target);
    const match = { ...findRoute(this.#routes, path), queryString, target };
    if (target.length > MAX_MEMOIZED_LENGTH) return match;
    if (this.#matches.size >= MAX_MEMOIZED) this.#matches.clear();
    this.#matches.set(target, match);
    return match;
  }
}

function findRoute(routes: readonly Route[], path: string): { route: Route; pathParameter: string } {
  for (const route of routes) {
    if (route.path === path) return { route, pathParameter: '' };
    if (!route.path.endsWith('/*')) continue;
    const prefix = route.path.slice(0, -1);
    const segment = path.slice(prefix.length);
    if (path.startsWith(prefix) && segment !== '' && !segment.includes('/'))
      return { route, pathParameter: decode(segment) };
  }
  throw new DendroError('not_found', 'unknown path; /openapi.json of the public listener lists the paths');
}

/** A segment that cannot be decoded stays as it is: it matches no name. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Splits the origin form, `/path?query`. A proxy may send the absolute form, `http://host/path?query` (RFC 9112, section 3.2). */
function splitTarget(target: string): { path: string; queryString: string } {
  const originForm = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const questionMark = originForm.indexOf('?');
  return questionMark === -1
    ? { path: originForm, queryString: '' }
    : { path: originForm.slice(0, questionMark), queryString: originForm.slice(questionMark + 1) };
}
