// Compares the parameters that a query uses with those that its endpoint declares.
import type { BoundValues } from './store.ts';

/** A group of parameters of which the SQL must use at least one. */
export interface RequiredParameters {
  readonly anyOf: readonly string[];
  /** Completes the sentence "uses neither $a nor $b: …". */
  readonly reason: string;
}

export interface ParameterRules {
  /** A value for every parameter that the SQL may use. */
  readonly sample: BoundValues;
  readonly required?: readonly RequiredParameters[];
}

/** Returns the first problem in one sentence, or undefined. `write` formats a name as in the store's SQL, such as `$name`. */
export function findParameterMismatch(
  used: readonly string[],
  { sample, required = [] }: ParameterRules,
  write: (name: string) => string,
): string | undefined {
  const unknown = used.find(name => sample[name] === undefined);
  if (unknown !== undefined)
    return `uses ${write(unknown)}, which is not declared; declared: ${Object.keys(sample).map(write).join(', ')}`;
  const unmet = required.find(({ anyOf }) => !anyOf.some(name => used.includes(name)));
  if (unmet === undefined) return undefined;
  const [first = '', ...others] = unmet.anyOf.map(write);
  const verb = others.length === 0 ? 'does not use' : 'uses neither';
  return `${verb} ${[first, ...others].join(' nor ')}: ${unmet.reason}`;
}
