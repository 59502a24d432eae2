// Converts the position of a page to the values that its query binds, and back. Also identifies the query of a cursor.
import { createCacheKey } from '../cache/cache-key.ts';
import type { BoundValues } from '../store/store.ts';
import type { Cursor } from './cursor.ts';
import type { EndpointDefinition } from './definition.ts';
import { cursorValueNames } from './parameter-definition.ts';

/**
 * Returns the SQL parameters for where the page starts. `position` is undefined for the first page. It is also undefined for the
 * second and later slices of every page (query-slices.ts). The query then skips no records.
 */
export function bindPosition(definition: EndpointDefinition, position: Cursor | undefined): BoundValues {
  const names = namesOf(definition);
  return {
    [names.timestamp]: { type: 'timestamp', value: position?.timestampMicros ?? null },
    [names.id]: { type: 'text', value: position?.id ?? null },
    [names.skip]: { type: 'integer', value: position?.skip ?? 0 },
    [names.slice]: { type: 'integer', value: position?.sliceSeconds ?? null },
  };
}

/** The inverse of `bindPosition`: returns the position from the SQL parameters. */
export function readPosition(definition: EndpointDefinition, values: BoundValues): Cursor | undefined {
  const names = namesOf(definition);
  const timestamp = values[names.timestamp];
  if (timestamp?.type !== 'timestamp' || timestamp.value === null) return undefined;
  return {
    timestampMicros: timestamp.value,
    id: String(values[names.id]?.value ?? ''),
    skip: Number(values[names.skip]?.value ?? 0),
    sliceSeconds: Number(values[names.slice]?.value ?? 0),
  };
}

function namesOf({ parameters }: EndpointDefinition): ReturnType<typeof cursorValueNames> {
  return cursorValueNames(Object.keys(parameters).find(name => parameters[name]?.type === 'cursor') ?? '');
}

/** Identifies the query that a cursor belongs to: the endpoint and all parameters but the cursor. */
export function describePagedQuery({ id, parameters }: EndpointDefinition, values: BoundValues): string {
  const others = Object.keys(parameters).filter(name => parameters[name]?.type !== 'cursor');
  return createCacheKey({
    endpointId: id,
    pin: undefined,
    parameters: others.map(name => [name, values[name]?.value?.toString() ?? null]),
  });
}
