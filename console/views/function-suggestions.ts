// Suggestions for the function id: the functions with most invocations, from the endpoint logs.fields if the server has it.
import { type Endpoint, findEndpoint, findLongestTier } from '../api/catalog.ts';
import { ApiError, runQuery } from '../api/client.ts';
import type { SuggestionGroup } from '../components/combobox.ts';
import { formatCount } from '../format.ts';
import { describeRange, toBounds } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';

export interface FunctionScope {
  readonly catalog: readonly Endpoint[];
  readonly project: string;
  readonly settings: UrlState['settings'];
}

/** None if the server cannot list functions, or if the request fails: the user can enter any id. */
export async function suggestFunctions(
  { catalog, project, settings }: FunctionScope,
  text: string,
  signal: AbortSignal,
): Promise<readonly SuggestionGroup[]> {
  const endpoint = findEndpoint(catalog, 'logs.fields');
  if (project === '' || endpoint === undefined) return [];
  try {
    const { rows } = await runQuery(
      endpoint.name,
      {
        project,
        kind: 'function_edge',
        field: 'function',
        ...toBounds(settings),
        project_tier: findLongestTier(endpoint).name,
      },
      { signal },
    );
    const matching = rows.filter(({ value }) => String(value).includes(text));
    return [
      {
        heading: `Invocations ${describeRange(settings)}`,
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
