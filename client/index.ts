// dendro/client: calls the endpoints of a Dendro server from Node or a browser, with types for their parameters and rows. It has
// no dependencies.
import type { BuiltInEndpoints } from './endpoints.ts';

export { type Client, type ClientOptions, createClient, type QueryOptions } from './client.ts';
export type { BuiltInEndpoints } from './endpoints.ts';
export { DendroError, type ErrorCode } from './error.ts';
export type {
  Alert,
  AlertInstance,
  CacheOutcome,
  CatalogColumn,
  CatalogEndpoint,
  CatalogParameter,
  ClipReason,
  EndedInstance,
  Explanation,
  QueryResult,
} from './result.ts';

/**
 * The endpoints by name, with the types of their parameters and rows. `dendro types` prints a declaration that adds the custom
 * endpoints of a server to this interface.
 */
export interface Endpoints extends BuiltInEndpoints {}

/** Endpoints that are known only at run time: `createClient<AnyEndpoints>(…)`. */
export type AnyEndpoints = Record<
  string,
  {
    parameters: Record<string, string | number | boolean | Date | undefined>;
    row: Record<string, unknown>;
  }
>;
