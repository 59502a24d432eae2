// Explains why a search found nothing: the search expression, the time range, the log kind or the project.
import { type QueryResult, runQuery } from '../api/client.ts';
import { createFirstLogHelp } from '../components/first-log.ts';
import { RETENTION_NOTE } from '../components/messages.ts';
import { h } from '../dom.ts';
import { formatDateTime, formatRecordCount } from '../format.ts';
import type { UrlState } from '../url-state.ts';
import { sumCounts } from './histogram.ts';
import { readMicros } from './record-fields.ts';
import { toFilters } from './search-state.ts';
import { ALL, describeRange } from './time-range.ts';

export interface EmptySearch {
  readonly state: UrlState;
  /** Such as "Edge requests". */
  readonly kindTitle: string;
  /** The token can call logs.histogram. */
  readonly canCount: boolean;
  /** The range starts before the retention of the tier. */
  readonly isClipped: boolean;
  updateFilters(settings: UrlState['settings']): void;
  continueSearch(cursor: string): void;
}

export async function describeEmptySearch(
  search: EmptySearch,
  result: QueryResult,
  signal: AbortSignal,
): Promise<HTMLElement> {
  const { state, kindTitle, isClipped } = search;
  if (result.nextCursor !== undefined) return describeTimeLimit(search, result.nextCursor);
  const query = state.settings['query'] ?? '';
  const title =
    query === ''
      ? `No records of project ${state.project} ${describeRange(state.settings)}`
      : `No matches ${describeRange(state.settings)}`;
  return h(
    'div',
    { class: 'message', role: 'status' },
    h('h2', {}, title),
    h('p', {}, `Log kind: ${kindTitle}. Project: ${state.project}.`),
    ...(await findReasons(search, query, signal)),
    isClipped ? h('p', {}, RETENTION_NOTE) : undefined,
  );
}

async function findReasons(search: EmptySearch, query: string, signal: AbortSignal): Promise<HTMLElement[]> {
  const { state, canCount, updateFilters, kindTitle } = search;
  const parameters = toFilters(state);
  if (query !== '') {
    const endpoint = canCount ? 'logs.histogram' : 'logs.search';
    const { rows } = await runQuery(endpoint, { ...parameters, query: '' }, { signal });
    const count = canCount ? sumCounts(rows) : rows.length;
    if (count > 0)
      return [
        h('p', {}, describeOthers(count, canCount), h('code', {}, query), '.'),
        createButton('Remove the search expression', () => updateFilters({ query: '' })),
      ];
  }
  const everything = { ...parameters, query: '', iso_timestamp_start: '', iso_timestamp_end: '' };
  const { rows, dataThrough } = await runQuery('logs.search', everything, { signal });
  const [newest] = rows;
  if (newest !== undefined) {
    const at = formatDateTime(Math.floor(readMicros(newest) / 1000));
    return [
      h('p', {}, `The newest record of this project and log kind is from ${at}, outside this time range.`),
      createButton('Show all records of the tier', () => updateFilters({ range: ALL, query: '' })),
    ];
  }
  if (dataThrough === undefined) {
    const { kind } = state.settings;
    return [
      h('p', {}, `The log “${kindTitle}” has no records that your token can read.`),
      ...(kind === 'edge' || kind === 'function_edge' ? createFirstLogHelp(kind, state.project) : []),
    ];
  }
  return [
    h(
      'p',
      {},
      'This project has no records of this log kind within the retention of the tier. Check the spelling of its reference, ' +
        'or choose another log kind or a higher tier.',
    ),
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
