// Explains why a search found nothing: the search expression, the time range, the log kind or the project.
import { findEndpoint } from '../api/catalog.ts';
import { type QueryResult, runQuery } from '../api/client.ts';
import { type Child, h } from '../dom.ts';
import {
  countByKind,
  createSendHelp,
  describeExisting,
  findExistingRecords,
  hasRecords,
} from '../existing-records.ts';
import { formatDateTime, formatRecordCount } from '../format.ts';
import { ALL, describeRange } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import type { ViewContext } from '../views/view.ts';
import { sumCounts } from './histogram.ts';
import { findKind, formatKindCount, nameRecords } from './kinds.ts';
import { readMicros } from './record-fields.ts';
import { toFilters } from './search-state.ts';

export interface EmptySearch {
  readonly state: UrlState;
  readonly context: Pick<ViewContext, 'catalog' | 'linkToLogs' | 'linkToProject'>;
  /** The tier limits what the page shows. */
  readonly retentionNote: HTMLElement | undefined;
  updateFilters(settings: UrlState['settings']): void;
  continueSearch(cursor: string): void;
}

export async function describeEmptySearch(
  search: EmptySearch,
  result: QueryResult,
  signal: AbortSignal,
): Promise<HTMLElement> {
  const { state, retentionNote } = search;
  if (result.nextCursor !== undefined) return describeTimeLimit(search, result.nextCursor);
  const { query = '', kind = '' } = state.settings;
  const title =
    query === ''
      ? `No ${nameRecords(kind, 0)} of project ${state.project} ${describeRange(state.settings)}`
      : `No matches ${describeRange(state.settings)}`;
  return h(
    'div',
    { class: 'message', role: 'status' },
    h('h2', {}, title),
    query === '' ? undefined : h('p', {}, `Log kind: ${findKind(kind).title}. Project: ${state.project}.`),
    ...(await findReasons(search, query, signal)),
    retentionNote,
  );
}

async function findReasons(search: EmptySearch, query: string, signal: AbortSignal): Promise<Child[]> {
  const { state, updateFilters, context } = search;
  const { project } = state;
  const { kind = '', tier = '' } = state.settings;
  const parameters = toFilters(state);
  const matches = query === '' ? [] : await describeOtherMatches(search, signal);
  if (query !== '') {
    const canCount = findEndpoint(context.catalog, 'logs.histogram') !== undefined;
    const endpoint = canCount ? 'logs.histogram' : 'logs.search';
    const { rows } = await runQuery(endpoint, { ...parameters, query: '' }, { signal });
    const count = canCount ? sumCounts(rows) : rows.length;
    if (count > 0)
      return [
        h('p', {}, describeOthers(count, canCount), h('code', {}, query), '.'),
        createButton('Remove the search expression', () => updateFilters({ query: '' })),
        ...matches,
      ];
  }
  const everything = { ...parameters, query: '', iso_timestamp_start: '', iso_timestamp_end: '' };
  const { rows, dataThrough } = await runQuery('logs.search', everything, { signal });
  const [newest] = rows;
  if (newest !== undefined) {
    const at = formatDateTime(Math.floor(readMicros(newest) / 1000));
    return [
      h('p', {}, `The newest record of this project and log kind is from ${at}, outside this time range.`),
      createButton('Show all records', () => updateFilters({ range: ALL, start: '', end: '', query: '' })),
      ...matches,
    ];
  }
  const existing = await findExistingRecords(context.catalog, project, signal);
  const source = { kind, project };
  const help = createSendHelp(existing, source, dataThrough === undefined);
  if (existing === undefined)
    return [h('p', {}, describeUnknown(nameRecords(kind, 0), dataThrough === undefined)), ...help];
  const isTooOld = hasRecords(existing, source);
  return [
    isTooOld
      ? h('p', {}, `No ${nameRecords(kind, 0)} are within the retention of the tier ${tier}.`)
      : undefined,
    ...describeExisting(existing, source, context),
    ...matches,
    ...help,
  ];
}

/** For a token that cannot call logs.top: the project may have records of other log kinds. */
function describeUnknown(records: string, isLogEmpty: boolean): string {
  if (isLogEmpty) return `There are no ${records} that your token can read.`;
  return `This project has no ${records} within the retention of the tier. Check the spelling of its reference, or choose another log kind or a higher tier.`;
}

/** The log kinds that have matches of the same search in the same time range. */
async function describeOtherMatches(
  { state, context, updateFilters }: EmptySearch,
  signal: AbortSignal,
): Promise<Child[]> {
  const kinds = await countByKind(context.catalog, toFilters(state), signal);
  if (kinds.length === 0) return [];
  const counts = kinds.map(({ kind, count }) => formatKindCount(kind, count)).join(', ');
  return [
    h('p', {}, `Other log kinds have matches: ${counts}.`),
    createButton('Search all logs', () => updateFilters({ kind: 'all' })),
  ];
}

/** The text before the search expression. Without a histogram, the count is that of one page. */
function describeOthers(count: number, isTotal: boolean): string {
  if (!isTotal) return 'This time range has records, but none of them matches ';
  return `${formatRecordCount(count)} of this time range ${count === 1 ? 'does' : 'do'} not match `;
}

function describeTimeLimit({ continueSearch }: EmptySearch, cursor: string): HTMLElement {
  return h(
    'div',
    { class: 'message', role: 'status' },
    h('h2', {}, 'No matches so far'),
    h('p', {}, 'The time limit ended the search before it reached the start of the time range.'),
    createButton('Continue with older records', () => continueSearch(cursor)),
  );
}

function createButton(label: string, onClick: () => void): HTMLElement {
  return h('button', { type: 'button', class: 'button', on: { click: onClick } }, label);
}
