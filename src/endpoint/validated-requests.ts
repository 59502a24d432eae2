// Validates the parameters of a request and remembers the result by the request's URL, so that a cache hit does not
// parse its URL again. Validation depends on the definition, the URL and the token's highest tier, never on the time, so
// a remembered result stays valid. Bounded in bytes; the oldest entries are removed first.

import { createCacheKey } from '../cache/cache-key.ts';
import type { BoundValues } from '../store/store.ts';
import type { EndpointDefinition } from './definition.ts';
import { bindParameters } from './parameters.ts';

/** The parameters of a valid request, and the keys of its result in the cache. */
export interface ValidatedRequest {
  readonly values: BoundValues;
  readonly key: string;
  /** The key for a token that is pinned to projects: its result contains records of the requested project only. */
  readonly pinnedKey: string;
}

/** Everything that a validated request depends on, besides the definition that the target selects. */
export interface ValidationKey {
  /** Path and query string exactly as received. Different endpoints have different targets. */
  readonly target: string;
  readonly maxTier?: string | undefined;
}

/** A request as its sender wrote it. `parameters` is read only if the target is not remembered. */
export interface UnvalidatedRequest {
  readonly target: string;
  readonly parameters: URLSearchParams;
}

interface RememberedRequest extends ValidatedRequest {
  readonly maxTier: string | undefined;
  readonly bytes: number;
}

/** Room for about 5,000 requests of the usual length. */
const MAX_BYTES = 8 * 1024 * 1024;

export class ValidatedRequests {
  readonly #maxBytes: number;
  readonly #remembered = new Map<string, RememberedRequest>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Throws `missing_parameter` or `invalid_parameter`. Errors are not remembered. */
  validate(
    definition: EndpointDefinition,
    request: UnvalidatedRequest,
    maxTier: string | undefined,
  ): ValidatedRequest {
    const { target } = request;
    const remembered = this.get({ target, maxTier });
    if (remembered !== undefined) return remembered;
    const validated = validateParameters(definition, request.parameters, maxTier);
    // A request that is not cached runs its query anyway: parsing its URL costs nothing in comparison.
    if (definition.cache !== 'none') this.set({ target, maxTier }, validated);
    return validated;
  }

  get({ target, maxTier }: ValidationKey): ValidatedRequest | undefined {
    const remembered = this.#remembered.get(target);
    return remembered?.maxTier === maxTier ? remembered : undefined;
  }

  set({ target, maxTier }: ValidationKey, validated: ValidatedRequest): void {
    const bytes = estimateBytes(target);
    this.#remove(target); // it may be remembered for another tier
    this.#remembered.set(target, { ...validated, maxTier, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#remembered.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#remove(oldest);
    }
  }

  #remove(target: string): void {
    this.#bytes -= this.#remembered.get(target)?.bytes ?? 0;
    this.#remembered.delete(target);
  }
}

/** Validates parameters without remembering the result. Throws `missing_parameter` or `invalid_parameter`. */
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

function createKey(
  definition: EndpointDefinition,
  values: BoundValues,
  pinnedProject: string | undefined,
): string {
  return createCacheKey({
    endpointId: definition.id,
    pinnedProject,
    parameters: Object.keys(definition.parameters).map(name => [
      name,
      values[name]?.value?.toString() ?? null,
    ]),
  });
}

/** An upper bound: the target, its values and the two keys, with room for escapes, and the objects around them. */
function estimateBytes(target: string): number {
  return 1000 + 12 * target.length;
}
