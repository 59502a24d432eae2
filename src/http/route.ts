// Routes: which path and methods lead where.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../errors.ts';
import type { Reply } from './reply.ts';

/** A call, as a route sees it. */
export interface Call {
  readonly request: IncomingMessage;
  /** What follows a route's prefix, still encoded; empty for a route without one. */
  readonly rest: string;
  /** What follows the question mark, as it came. */
  readonly query: string;
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

/** Throws `not_found` for a path that no route has. */
export function findRoute(routes: readonly Route[], path: string): { route: Route; rest: string } {
  for (const route of routes) {
    if (route.path === path) return { route, rest: '' };
    if (!route.path.endsWith('/*')) continue;
    const prefix = route.path.slice(0, -1);
    const rest = path.slice(prefix.length);
    if (path.startsWith(prefix) && rest !== '' && !rest.includes('/')) return { route, rest };
  }
  throw new DendroError('not_found', 'there is nothing at this path; /openapi.json lists what there is');
}

/** Splits `/path?query`; a proxy may send the absolute form, `http://host/path?query`. */
export function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  return mark === -1
    ? { path: local, query: '' }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}
