// Suggestions for the function id: the functions with most invocations, from the endpoint logs.fields if the server has it.
import { type Endpoint, findEndpoint } from '../api/catalog.ts';
import { ApiError, runQuery } from '../api/client.ts';
import type { SuggestionGroup } from '../components/combobox.ts';
import { formatCount, formatPeriod } from '../format.ts';
import { chooseTier } from './logs-link.ts';

export interface FunctionScope {
  readonly catalog: readonly Endpoint[];
  readonly project: string;
  readonly windowSeconds: number;
}

/** None if the server cannot list functions, or if the request fails: the user can enter any id. */
export async function suggestFunctions(
  { catalog, project, windowSeconds }: FunctionScope,
  text: string,
  signal: AbortSignal,
): Promise<readonly SuggestionGroup[]> {
  const endpoint = findEndpoint(catalog, 'logs.fields');
  if (project === '' || endpoint === undefined) return [];
  const startMs = Date.now() - windowSeconds * 1000;
  try {
    const { rows } = await runQuery(
      endpoint.name,
      {
        project,
        kind: 'function_edge',
        field: 'function',
        iso_timestamp_start: new Date(startMs).toISOString(),
        project_tier: chooseTier(endpoint, '', startMs * 1000),
      },
      { signal },
    );
    const matching = rows.filter(({ value }) => String(value).includes(text));
    return [
      {
        heading: `Invocations of the last ${formatPeriod(windowSeconds)}`,
        suggestions: matching.map(({ value, count }) => ({
          value: String(value),
          detail: formatCount(Number(count)),
        })),
      },
    ];
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) return [];
    throw error;
  }
}
