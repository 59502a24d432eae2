// Routes: which path and methods lead where, and the router that finds them.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../errors.ts';
import type { Reply } from './reply.ts';

/** A call, as a route sees it. */
export interface Call {
  readonly request: IncomingMessage;
  /** What follows a route's prefix, decoded; empty for a route without one. */
  readonly rest: string;
  /** What follows the question mark, as it came. */
  readonly query: string;
  /** The whole of what was asked for, as it came. */
  readonly text: string;
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
  answer(call: Call): Reply | Promise<Reply>;
}

/** Where a request's target leads. */
export interface Target extends Pick<Call, 'rest' | 'query' | 'text'> {
  readonly route: Route;
}

/** Longer targets are taken apart each time. */
const MAX_KEPT_LENGTH = 1_000;
const MAX_KEPT = 2_000;

/** Keeps what it made of targets: dashboards ask the same again and again, and a cached hit is felt to take it apart. */
export class Router {
  readonly #routes: readonly Route[];
  readonly #kept = new Map<string, Target>();

  constructor(routes: readonly Route[]) {
    this.#routes = routes;
  }

  /** Throws `not_found` for a path that no route has. */
  find(text: string): Target {
    const kept = this.#kept.get(text);
    if (kept !== undefined) return kept;
    const { path, query } = splitTarget(text);
    const target = { ...findRoute(this.#routes, path), query, text };
    if (text.length > MAX_KEPT_LENGTH) return target;
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(text, target);
    return target;
  }
}

function findRoute(routes: readonly Route[], path: string): { route: Route; rest: string } {
  for (const route of routes) {
    if (route.path === path) return { route, rest: '' };
    if (!route.path.endsWith('/*')) continue;
    const prefix = route.path.slice(0, -1);
    const rest = path.slice(prefix.length);
    if (path.startsWith(prefix) && rest !== '' && !rest.includes('/')) return { route, rest: decode(rest) };
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
