// What exists of a project, for a page that has nothing to show: its records by log kind, or, if it has none, the projects that
// have some. Without logs.top, nothing is known, and nothing is said.
import { type Endpoint, findEndpoint, findLongestTier, readRetentionDays } from './api/catalog.ts';
import { runQuery } from './api/client.ts';
import { createFirstLogHelp, createStoreHelp } from './components/first-log.ts';
import { type Child, h } from './dom.ts';
import { formatElapsed, formatPeriod } from './format.ts';
import { formatKindCount, nameRecords } from './logs/kinds.ts';
import { type ActiveProject, canListProjects, describeProject, fetchSimilarProjects } from './projects.ts';
import type { ViewContext } from './views/view.ts';

/** The log kind and the project that a page reads. */
export interface RecordSource {
  readonly kind: string;
  readonly project: string;
}

export interface KindCount {
  readonly kind: string;
  readonly count: number;
  /** The time of the newest record, in Unix microseconds. */
  readonly last: number;
}

export interface ExistingRecords {
  /** The log kinds that have records of the project, those with most records first. */
  readonly kinds: readonly KindCount[];
  /** Older records are not counted. */
  readonly retentionDays: number;
  /** If there is no kind: the projects that have records. Undefined if they are unknown. */
  readonly projects: readonly ActiveProject[] | undefined;
}

const ENDPOINT = 'logs.top';
const MAX_PROJECTS = 10;

/** Undefined if the token cannot call logs.top. */
export async function findExistingRecords(
  catalog: readonly Endpoint[],
  project: string,
  signal: AbortSignal,
): Promise<ExistingRecords | undefined> {
  const endpoint = findEndpoint(catalog, ENDPOINT);
  if (endpoint === undefined) return undefined;
  const longest = findLongestTier(endpoint);
  const kinds = await countByKind(catalog, { project, project_tier: longest.name }, signal);
  const isUnknownProject = kinds.length === 0 && canListProjects(catalog);
  return {
    kinds,
    retentionDays: readRetentionDays(longest),
    projects: isUnknownProject ? await fetchSimilarProjects(project, signal) : undefined,
  };
}

/** The number of records of each log kind. Empty if the token cannot call logs.top. */
export async function countByKind(
  catalog: readonly Endpoint[],
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<KindCount[]> {
  if (findEndpoint(catalog, ENDPOINT) === undefined) return [];
  const { rows } = await runQuery(ENDPOINT, { ...parameters, kind: 'all', field: 'kind' }, { signal });
  return rows.map(row => ({
    kind: String(row['value']),
    count: Number(row['count']),
    last: Number(row['last']),
  }));
}

export const hasRecords = ({ kinds }: ExistingRecords, { kind }: RecordSource): boolean =>
  kind === 'all' ? kinds.length > 0 : kinds.some(each => each.kind === kind);

/** Says what exists and what is missing. */
export function describeExisting(
  existing: ExistingRecords,
  source: RecordSource,
  context: Pick<ViewContext, 'linkToLogs' | 'linkToProject'>,
): Child[] {
  const { kinds, projects, retentionDays } = existing;
  const { kind, project } = source;
  const period = `in the last ${formatPeriod(retentionDays * 86_400)}`;
  if (kinds.length > 0) {
    const missing = hasRecords(existing, source) ? '' : ` has no ${nameRecords(kind, 0)} ${period}. It`;
    return [
      h('p', {}, `Project ${project}${missing} has:`),
      h('ul', {}, ...kinds.map(each => describeKind(each, context))),
    ];
  }
  if (projects?.length === 0) return [];
  const others = (projects ?? []).slice(0, MAX_PROJECTS);
  const spelling = `Project ${project} has no records of any log kind ${period}. Check the spelling of its reference.`;
  return [
    h('p', {}, others.length === 0 ? spelling : `${spelling} These projects have records:`),
    others.length === 0
      ? undefined
      : h(
          'ul',
          { class: 'project-list' },
          ...others.map(each =>
            h('li', {}, context.linkToProject(each.project), h('small', {}, describeProject(each))),
          ),
        ),
  ];
}

function describeKind(
  { kind, count, last }: KindCount,
  { linkToLogs }: Pick<ViewContext, 'linkToLogs'>,
): HTMLElement {
  const age = formatElapsed(Math.max(0, (Date.now() - last / 1000) / 1000));
  return h('li', {}, linkToLogs(formatKindCount(kind, count), kind), `, the newest ${age} ago`);
}

/**
 * How to send the first record: of an empty store, or of a log kind. None if the page has nothing to show for another reason.
 * `isLogEmpty`: the log kind has no records that the token can read.
 */
export function createSendHelp(
  existing: ExistingRecords | undefined,
  { kind, project }: RecordSource,
  isLogEmpty: boolean,
): HTMLElement[] {
  const isKindMissing =
    existing === undefined
      ? isLogEmpty
      : existing.kinds.length > 0 && !hasRecords(existing, { kind, project });
  if (isKindMissing) return createFirstLogHelp(kind, project, `Send the first ${nameRecords(kind, 1)}`);
  return existing?.projects?.length === 0 ? createStoreHelp(kind, project) : [];
}
