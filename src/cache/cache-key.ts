// The cache key of a result: the endpoint, its declared parameters after validation, and, if the token is pinned, the projects
// whose records the result may contain. Requests with the same key share one cached result. The key contains the version of its
// format.

const KEY_VERSION = 1;

export interface CacheKeyFields {
  readonly endpointId: string;
  /**
   * The requested project if the endpoint has a parameter `project`, and otherwise all projects of the token. Undefined if the
   * token is not pinned.
   */
  readonly pin: readonly string[] | undefined;
  /** Declared parameters in the order of the definition. An absent parameter has its default or fallback; null if it has none. */
  readonly parameters: readonly (readonly [name: string, value: string | null])[];
}

export function createCacheKey({ endpointId, pin, parameters }: CacheKeyFields): string {
  return JSON.stringify([KEY_VERSION, endpointId, pin ?? null, ...parameters]);
}

/** Returns the endpointId of a key. */
export function endpointIdOf(key: string): string {
  return (JSON.parse(key) as [number, string])[1];
}
