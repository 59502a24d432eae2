// Validates the parameters of a request. Memoizes the result by the request's URL, so that a cache hit does not parse the
// URL again. Validation depends on the definition, the URL and the token's maximum tier, never on the time, so a memoized
// result stays valid. Bounded in bytes; the oldest entries are removed first.
import { createCacheKey } from '../cache/cache-key.ts';
import type { BoundValues } from '../store/store.ts';
import type { EndpointDefinition } from './definition.ts';
import { bindParameters } from './parameters.ts';

/** The parameters of a valid request, and the cache keys of its result. */
export interface ValidatedRequest {
  readonly values: BoundValues;
  /** The cache key if the token is not pinned to projects. */
  readonly key: string;
  /**
   * The cache key if the token is pinned to projects. The result then contains only records of the requested project. Not used
   * for an endpoint without a parameter `project`: its result depends on all projects of the token.
   */
  readonly pinnedKey: string;
}

/** What a memoized result depends on; the target identifies the endpoint. For each target, only the last tier is memoized. */
export interface ValidationKey {
  /** Path and query string, exactly as received. */
  readonly target: string;
  readonly maxTier?: string | undefined;
}

/** A request as the client sent it. `parameters` is read only if the target is not memoized. */
export interface UnvalidatedRequest {
  readonly target: string;
  readonly parameters: URLSearchParams;
}

interface MemoizedRequest extends ValidatedRequest {
  readonly maxTier: string | undefined;
  readonly bytes: number;
}

/** Room for about 5,000 requests of the usual length. */
const MAX_BYTES = 8 * 1024 * 1024;

export class ValidatedRequests {
  readonly #maxBytes: number;
  readonly #memoized = new Map<string, MemoizedRequest>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Throws `missing_parameter` or `invalid_parameter`. Errors are not memoized. */
  validate(
    definition: EndpointDefinition,
    request: UnvalidatedRequest,
    maxTier: string | undefined,
  ): ValidatedRequest {
    const { target } = request;
    const memoized = this.get({ target, maxTier });
    if (memoized !== undefined) return memoized;
    const validated = validateParameters(definition, request.parameters, maxTier);
    // If results are not cached, every request runs its query. Parsing the URL takes little time in comparison.
    if (definition.cache !== 'none') this.set({ target, maxTier }, validated);
    return validated;
  }

  get({ target, maxTier }: ValidationKey): ValidatedRequest | undefined {
    const memoized = this.#memoized.get(target);
    return memoized?.maxTier === maxTier ? memoized : undefined;
  }

  set({ target, maxTier }: ValidationKey, validated: ValidatedRequest): void {
    const bytes = estimateBytes(target);
    this.#remove(target); // it may be memoized with another tier
    this.#memoized.set(target, { ...validated, maxTier, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#memoized.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#remove(oldest);
    }
  }

  /** Call it when the definition of an endpoint has changed. */
  clear(): void {
    this.#memoized.clear();
    this.#bytes = 0;
  }

  #remove(target: string): void {
    this.#bytes -= this.#memoized.get(target)?.bytes ?? 0;
    this.#memoized.delete(target);
  }
}

/** Validates parameters without memoization. Throws `missing_parameter` or `invalid_parameter`. */
export function validateParameters(
  definition: EndpointDefinition,
  parameters: URLSearchParams,
  maxTier?: string,
): ValidatedRequest {
  const values = bindParameters(definition, parameters, maxTier);
  return {
    values,
    key: createKey(definition, values, undefined),
    pinnedKey: createKey(definition, values, String(values['project']?.value)),
  };
}

/** The cache key of a result that contains only records of the projects in `pin`. Without `pin`: of any project. */
export function createKey(
  definition: EndpointDefinition,
  values: BoundValues,
  pin: string | readonly string[] | undefined,
): string {
  return createCacheKey({
    endpointId: definition.id,
    pin,
    parameters: Object.keys(definition.parameters).map(name => [
      name,
      values[name]?.value?.toString() ?? null,
    ]),
  });
}

/** A generous estimate for one entry: the target, its values, the objects, and the two keys, which JSON escapes make longer. */
function estimateBytes(target: string): number {
  return 1000 + 12 * target.length;
}
