// The endpoint catalog as GET /api/endpoints returns it. The console takes intervals and tiers from it.
import type { CatalogEndpoint } from '../../client/index.ts';

export type {
  CatalogColumn as Column,
  CatalogEndpoint as Endpoint,
  CatalogParameter as Parameter,
} from '../../client/index.ts';

export interface Choice {
  readonly name: string;
  readonly values: Readonly<Record<string, string | number>>;
}

export interface Choices {
  readonly all: readonly Choice[];
  /** The choice that the page uses if its URL has none: the fallback, or the first choice if there is no fallback. */
  readonly default: Choice;
}

/** Undefined if the token cannot call the endpoint: the catalog contains only those that it can call. */
export function findEndpoint(
  catalog: readonly CatalogEndpoint[],
  endpointName: string,
): CatalogEndpoint | undefined {
  return catalog.find(({ name }) => name === endpointName);
}

/** The tier with the longest retention, of several the highest. A token with a maximum tier gets that one instead. */
export function findLongestTier(endpoint: CatalogEndpoint): Choice {
  return readChoices(endpoint, 'project_tier').all.reduce((longest, each) =>
    readRetentionDays(each) >= readRetentionDays(longest) ? each : longest,
  );
}

export const readRetentionDays = ({ values }: Choice): number => Number(values['retention_days']);

export function readChoices(endpoint: CatalogEndpoint, parameterName: string): Choices {
  const parameter = endpoint.parameters.find(({ name }) => name === parameterName);
  const { choices = [], choice_values = {}, fallback } = parameter ?? {};
  const all = choices.map(name => ({ name, values: choice_values[name] ?? {} }));
  const defaultChoice = all.find(({ name }) => name === fallback) ?? all[0];
  if (defaultChoice === undefined) throw new Error(`${endpoint.name} has no choices for ${parameterName}`);
  return { all, default: defaultChoice };
}
