// Routes: which path and methods lead where, and the router that finds them.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { HttpResponse } from './response.ts';

/** A call, as a route sees it. */
export interface HttpRequest {
  readonly request: IncomingMessage;
  /** What follows a route's prefix, decoded; empty for a route without one. */
  readonly pathParameter: string;
  /** What follows the question mark, as it came. */
  readonly query: string;
  /** The whole of what was asked for, as it came. */
  readonly target: string;
  readonly parameters: URLSearchParams;
  /** By which the call is found in logs; where it is read, the caller is told it, too. */
  readonly id: string;
  /** Aborts when the caller leaves before the answer. */
  readonly signal: AbortSignal;
}

export interface Route {
  /** The whole path, or, ending in `/*`, a prefix followed by one more segment. */
  readonly path: string;
  readonly methods: readonly string[];
  handle(call: HttpRequest): HttpResponse | Promise<HttpResponse>;
}

/** Where a request's target leads. */
export interface RouteMatch extends Pick<HttpRequest, 'pathParameter' | 'query' | 'target'> {
  readonly route: Route;
}

/** Longer targets are taken apart each time. */
const MAX_KEPT_LENGTH = 1_000;
const MAX_KEPT = 2_000;

/** Keeps what it made of targets: dashboards ask the same again and again, and a cached hit is felt to take it apart. */
export class Router {
  readonly #routes: readonly Route[];
  readonly #kept = new Map<string, RouteMatch>();

  constructor(routes: readonly Route[]) {
    this.#routes = routes;
  }

  /** Throws `not_found` for a path that no route has. */
  find(target: string): RouteMatch {
    const kept = this.#kept.get(target);
    if (kept !== undefined) return kept;
    const { path, query } = splitTarget(target);
    const match = { ...findRoute(this.#routes, path), query, target };
    if (target.length > MAX_KEPT_LENGTH) return match;
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(target, match);
    return match;
  }
}

function findRoute(routes: readonly Route[], path: string): { route: Route; pathParameter: string } {
  for (const route of routes) {
    if (route.path === path) return { route, pathParameter: '' };
    if (!route.path.endsWith('/*')) continue;
    const prefix = route.path.slice(0, -1);
    const rest = path.slice(prefix.length);
    if (path.startsWith(prefix) && rest !== '' && !rest.includes('/'))
      return { route, pathParameter: decode(rest) };
  }
  throw new DendroError('not_found', 'there is nothing at this path; /openapi.json lists what there is');
}

/** What does not decode is no name of anything. */
function decode(rest: string): string {
  try {
    return decodeURIComponent(rest);
  } catch {
    return rest;
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
