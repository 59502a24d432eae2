// The one way from a call to its answer: rules, then store. Knows no HTTP.
import type { Clock } from '../clock.ts';
import { DendroError } from '../errors.ts';
import type { BoundValues, QueryResult, Store } from '../store/store.ts';
import type { Endpoint } from './catalog.ts';
import { bindParameters, withNow } from './parameters.ts';

export interface Runner {
  readonly store: Store;
  readonly clock: Clock;
}

export async function runEndpoint(
  runner: Runner,
  endpoint: Endpoint,
  given: URLSearchParams,
  signal?: AbortSignal,
): Promise<QueryResult> {
  const now = runner.clock();
  const values = bindParameters(endpoint.definition, given);
  await checkPatterns(runner.store, endpoint, values, signal);
  return runner.store.query(endpoint.query, withNow(values, now), signal);
}

/** The engine that will run an expression judges it, so that what passes here cannot fail there. */
async function checkPatterns(
  store: Store,
  endpoint: Endpoint,
  values: BoundValues,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const [name, rule] of Object.entries(endpoint.definition.parameters)) {
    const pattern = values[name]?.value;
    if (rule.type !== 'pattern' || typeof pattern !== 'string') continue;
    const fault = await store.findPatternFault(pattern, signal);
    if (fault !== undefined)
      throw new DendroError(
        'invalid_parameter',
        `${name} is not a valid regular expression (RE2 syntax): ${fault}`,
        {
          param: name,
        },
      );
  }
}
