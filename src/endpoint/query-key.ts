// Identifies the query of a request: the endpoint, its declared parameters after validation, except a cursor, and, if the token is
// pinned, the projects whose records the result may contain. Requests with the same key share one cached result, and a cursor belongs
// to one key without projects (pages.ts).
import type { BoundValues } from '../store/store.ts';
import type { EndpointDefinition } from './definition.ts';

/** Part of the checksum of every cursor: another value would make existing cursors invalid. */
const VERSION = 1;

/**
 * An absent parameter has its default or fallback; null if it has none. `pin`: the requested project if the endpoint has a parameter
 * `project`, and otherwise all projects of the token; undefined if the token is not pinned.
 */
export function createQueryKey(
  { id, parameters }: Pick<EndpointDefinition, 'id' | 'parameters'>,
  values: BoundValues,
  pin?: readonly string[],
): string {
  const names = Object.keys(parameters).filter(name => parameters[name]?.type !== 'cursor');
  const described = names.map(name => [name, values[name]?.value?.toString() ?? null]);
  return JSON.stringify([VERSION, id, pin ?? null, ...described]);
}

/** Returns the id of the endpoint of a key. */
export function endpointIdOf(key: string): string {
  return (JSON.parse(key) as [number, string])[1];
}
