// The cache key of a result: the endpoint, its declared parameters after validation, and, if the
// token is pinned, the requested project.
// Requests with the same key have the same result. The key contains the version of its format.

const KEY_VERSION = 1;

export interface CacheKeyFields {
  readonly endpointId: string;
  readonly pinnedProject: string | undefined;
  /** Declared parameters in the order of the definition. The value of an absent parameter is null. */
  readonly parameters: readonly (readonly [name: string, value: string | null])[];
}

export function createCacheKey({ endpointId, pinnedProject, parameters }: CacheKeyFields): string {
  return JSON.stringify([KEY_VERSION, endpointId, pinnedProject ?? null, ...parameters]);
}
