// Validates the parameters of a request.
import type { BoundValues } from '../store/store.ts';
import type { EndpointDefinition } from './definition.ts';
import { bindParameters } from './parameters.ts';

/** The parameters of a valid request. */
export interface ValidatedRequest {
  readonly values: BoundValues;
}

/** Throws `missing_parameter` or `invalid_parameter`. */
export function validateParameters(
  definition: EndpointDefinition,
  parameters: URLSearchParams,
  maxTier?: string,
): ValidatedRequest {
  return { values: bindParameters(definition, parameters, maxTier) };
}
