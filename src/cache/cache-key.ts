// What makes two calls the same: the endpoint, its declared parameters after their rules were applied, and the project
// that the token is pinned to. The form is versioned, since a changed form must never meet entries of the old one.

const KEY_VERSION = 1;

export interface CacheKeyFields {
  readonly endpointId: string;
  readonly pinnedProject: string | undefined;
  /** Declared parameters, in the order of the definition; null where one was not given. */
  readonly parameters: readonly (readonly [name: string, value: string | null])[];
}

export function createCacheKey({ endpointId, pinnedProject, parameters }: CacheKeyFields): string {
  return JSON.stringify([KEY_VERSION, endpointId, pinnedProject ?? null, ...parameters]);
}
