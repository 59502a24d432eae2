// The request and route types, and the router that finds the route of a request's target.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { HttpResponse } from './response.ts';

/** A request as its route gets it. */
export interface HttpRequest {
  /** Node's own request: headers, socket, body. */
  readonly raw: IncomingMessage;
  /** The segment after a route's prefix, decoded; empty for a route without a prefix. */
  readonly pathParameter: string;
  /** The part after the question mark, not decoded. */
  readonly query: string;
  /** The whole request target: path and query, not decoded. */
  readonly target: string;
  readonly parameters: URLSearchParams;
  /** Identifies the request in logs. The response carries it only if something was logged or sent to the store under it. */
  readonly id: string;
  /** Aborts when the client disconnects before the response is complete. */
  readonly signal: AbortSignal;
}

export interface Route {
  /** A whole path, or a prefix that ends in `/*` and matches one more segment. */
  readonly path: string;
  readonly methods: readonly string[];
  handle(request: HttpRequest): HttpResponse | Promise<HttpResponse>;
}

export interface RouteMatch extends Pick<HttpRequest, 'pathParameter' | 'query' | 'target'> {
  readonly route: Route;
}

/** Longer targets are not memoized. */
const MAX_MEMOIZED_LENGTH = 1_000;
const MAX_MEMOIZED = 2_000;

/** Memoizes matches by target: dashboards repeat the same targets, and parsing one is a measurable share of a cache hit. */
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
    const { path, query } = splitTarget(target);
    const match = { ...findRoute(this.#routes, path), query, target };
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
  throw new DendroError('not_found', 'unknown path; /openapi.json lists the available paths');
}

/** A segment that cannot be decoded stays as it is: it matches no name. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Splits `/path?query`. A proxy may send the absolute form, `http://host/path?query`. */
function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  return mark === -1
    ? { path: local, query: '' }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}
