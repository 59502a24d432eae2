// The catalog on the wire: what each endpoint is, takes and answers, as its definition says.
import type { Endpoint } from '../endpoint/catalog.ts';
import type { Parameter } from '../endpoint/definition.ts';

export function describeEndpoint({ definition }: Endpoint): Record<string, unknown> {
  const { id, name, description, max_rows, cache, parameters, columns } = definition;
  return {
    id,
    name,
    description,
    max_rows,
    cache: cache === 'none' ? { lifetime_seconds: 0, warming_seconds: null } : cache,
    sandboxing: false,
    parameters: Object.entries(parameters).map(([key, rule]) => describeParameter(key, rule)),
    columns: Object.entries(columns).map(([key, column]) => ({ name: key, ...column })),
  };
}

function describeParameter(name: string, rule: Parameter): Record<string, unknown> {
  const { type, required, description } = rule;
  if (rule.type !== 'choice') return { name, type, required, description };
  return {
    name,
    type,
    required,
    description,
    choices: Object.keys(rule.choices),
    choice_values: rule.choices,
    fallback: rule.fallback ?? null,
  };
}
