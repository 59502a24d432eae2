// The projects that the user can choose from: those that this tab has shown, and those with records, which the endpoint
// projects.active returns if the server has it.
import { type Endpoint, findEndpoint } from './api/catalog.ts';
import { ApiError, runQuery } from './api/client.ts';
import type { SuggestionGroup } from './components/combobox.ts';
import { formatElapsed, formatRecordCount } from './format.ts';

const ENDPOINT = 'projects.active';
const DAY_MS = 86_400_000;
/** Session storage key of the projects that this tab has shown, newest first. */
const RECENT_KEY = 'dendro.projects';
const MAX_RECENT = 12;

export interface ActiveProject {
  readonly project: string;
  readonly count: number;
  /** The time of its newest record, in Unix milliseconds. */
  readonly newest: number;
}

export const canListProjects = (catalog: readonly Endpoint[]): boolean =>
  findEndpoint(catalog, ENDPOINT) !== undefined;

/**
 * The projects with records of the last day, those with most records first. If there is at most one, the projects with any
 * records: a token that is pinned to one project gets this project, even if it has no new records.
 */
export async function fetchProjects(signal?: AbortSignal): Promise<readonly ActiveProject[]> {
  const recent = await fetchActive('', new Date(Date.now() - DAY_MS).toISOString(), signal);
  return recent.length > 1 ? recent : fetchActive('', '', signal);
}

/** The projects that begin like this one; if there are none, all. Those with most records first. */
export async function fetchSimilarProjects(
  project: string,
  signal: AbortSignal,
): Promise<readonly ActiveProject[]> {
  const similar = await fetchActive(project.slice(0, Math.ceil(project.length / 2)), '', signal);
  return similar.length > 0 ? similar : fetchActive('', '', signal);
}

async function fetchActive(prefix: string, start: string, signal?: AbortSignal): Promise<ActiveProject[]> {
  const options = signal === undefined ? {} : { signal };
  const { rows } = await runQuery(ENDPOINT, { prefix, iso_timestamp_start: start }, options);
  return rows.map(row => ({
    project: String(row['project']),
    count: Number(row['count']),
    newest: Number(row['newest']) / 1000,
  }));
}

export function describeProject({ count, newest }: ActiveProject): string {
  const age = formatElapsed(Math.max(0, (Date.now() - newest) / 1000));
  return `${formatRecordCount(count)}, newest ${age} ago`;
}

/** Recent projects that contain the text, and active projects that start with it. */
export async function suggestProjects(
  catalog: readonly Endpoint[],
  text: string,
  signal: AbortSignal,
): Promise<readonly SuggestionGroup[]> {
  const recent = readRecentProjects().filter(project => project.includes(text));
  const active = canListProjects(catalog) ? await fetchSuggested(text, signal) : [];
  return [
    { heading: 'Recent', suggestions: recent.map(value => ({ value })) },
    {
      heading: 'With records of the last day',
      suggestions: active
        .filter(({ project }) => !recent.includes(project))
        .map(each => ({ value: each.project, detail: formatRecordCount(each.count) })),
    },
  ];
}

/** Suggestions are a convenience: if the request fails, there are none. */
async function fetchSuggested(prefix: string, signal: AbortSignal): Promise<readonly ActiveProject[]> {
  try {
    return await fetchActive(prefix, new Date(Date.now() - DAY_MS).toISOString(), signal);
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) return [];
    throw error;
  }
}

export function readRecentProjects(): readonly string[] {
  try {
    const saved: unknown = JSON.parse(sessionStorage.getItem(RECENT_KEY) ?? '[]');
    return Array.isArray(saved) ? saved.filter(project => typeof project === 'string') : [];
  } catch {
    return [];
  }
}

export function saveRecentProject(project: string): void {
  if (project === '') return;
  const others = readRecentProjects().filter(other => other !== project);
  sessionStorage.setItem(RECENT_KEY, JSON.stringify([project, ...others].slice(0, MAX_RECENT)));
}
