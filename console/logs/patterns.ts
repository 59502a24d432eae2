// The tab Patterns: the messages of a search, grouped, with their counts and their trend since the period before.
import type { QueryResult, Row } from '../api/client.ts';
import { QueryPanel, type QueryPanelOptions } from '../components/query-panel.ts';
import { h, replaceChildren } from '../dom.ts';
import { formatCount, formatDateTime, formatElapsed, formatPercent } from '../format.ts';
import { describeRange, isOpenEnded } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { type Term, toPhrase } from './search-expression.ts';
import { toFilterKey, toFilters } from './search-state.ts';

export interface SearchTab {
  readonly element: HTMLElement;
  show(state: UrlState): void;
  /** Stops loading, because another tab is shown. */
  stop(): void;
  close(): void;
}

export type TabOptions = Pick<QueryPanelOptions, 'context' | 'markInvalid' | 'createErrorMessage'> & {
  /** Shows the records that match this term too. */
  onTerm(term: Term): void;
  createRetentionNote(result: QueryResult): HTMLElement | undefined;
};

const REFRESH_SECONDS = 60;

export function createPatternsTab({ onTerm, createRetentionNote, ...options }: TabOptions): SearchTab {
  const list = h('ol', { class: 'patterns' });
  const notes = h('div', {});
  const panel = new QueryPanel({
    ...options,
    content: h('div', { class: 'stack' }, notes, h('div', { class: 'card' }, list)),
    render: result => {
      const { rows, clipped } = result;
      const cut = `Only the ${formatCount(rows.length)} most frequent patterns are shown.`;
      const rowNote = clipped.includes('row-limit') ? h('p', { class: 'note' }, cut) : undefined;
      replaceChildren(notes, createRetentionNote(result), rowNote);
      notes.hidden = notes.childElementCount === 0;
      replaceChildren(list, ...rows.map(row => createPattern(row, onTerm)));
    },
  });
  return {
    element: panel.element,
    show: state =>
      panel.run({
        endpoint: 'logs.patterns',
        key: toFilterKey(state),
        parameters: () => toFilters(state),
        windowSeconds: undefined,
        refreshSeconds: isOpenEnded(state.settings) ? REFRESH_SECONDS : undefined,
        emptyState: {
          title: `No messages ${describeRange(state.settings)}`,
          hints: [],
          log: 'log',
          windowSeconds: undefined,
        },
      }),
    stop: () => panel.stop(),
    close: () => panel.close(),
  };
}

/** A line that opens to a sample, with the terms that find or hide these messages. */
export function createPattern(row: Row, onTerm: (term: Term) => void): HTMLElement {
  const pattern = String(row['pattern']);
  const phrase = toPatternPhrase(pattern);
  const [count, errors] = [Number(row['count']), Number(row['error_count'])];
  const button = (label: string, isExcluded: boolean) =>
    h(
      'button',
      {
        type: 'button',
        class: 'button small',
        on: { click: () => onTerm({ field: undefined, value: phrase, isExcluded }) },
      },
      label,
    );
  const times = [row['first'], row['last']].map(micros => formatDateTime(Math.floor(Number(micros) / 1000)));
  return h(
    'li',
    {},
    h(
      'details',
      { class: 'pattern' },
      h(
        'summary',
        {},
        h('span', { class: 'pattern-count' }, formatCount(count)),
        createTrend(row),
        h('span', { class: `pattern-text mono ${errors > 0 ? 'pattern-error' : ''}` }, pattern),
        h('span', { class: 'pattern-age muted' }, `${formatElapsed(toAge(row))} ago`),
      ),
      h(
        'div',
        { class: 'pattern-details' },
        h('p', { class: 'details-message' }, String(row['sample'])),
        h(
          'p',
          { class: 'muted' },
          `${formatPercent(Number(row['share']))} of the records, ${formatCount(errors)} errors, from ${times.join(' to ')}`,
        ),
        phrase === ''
          ? undefined
          : h(
              'div',
              { class: 'details-actions' },
              button('Show these records', false),
              button('Exclude', true),
            ),
      ),
    ),
  );
}

const toAge = (row: Row): number => Math.max(0, (Date.now() - Number(row['last']) / 1000) / 1000);

/** How the count has changed since the period before. That period can be unknown, such as before the retention. */
export function createTrend(row: Row): HTMLElement {
  const [count, before] = [Number(row['count']), Number(row['count_before'])];
  if (row['share_before'] === null) return h('span', { class: 'trend' }, '–');
  if (before === 0) return h('span', { class: 'trend' }, h('span', { class: 'badge new' }, 'new'));
  const change = count / before - 1;
  const title = `${formatCount(before)} in the period before`;
  return h('span', { class: 'trend', title }, formatChange(change));
}

/** 0.5 becomes +50%, and 9 or more become ×10 or more. */
export function formatChange(change: number): string {
  if (change >= 4) return `×${formatCount(Math.round(change + 1))}`;
  if (Math.abs(change) < 0.005) return '±0%';
  return `${change > 0 ? '+' : '−'}${formatPercent(Math.round(Math.abs(change) * 100) / 100)}`;
}

/** The longest part of the pattern that all its messages contain. */
export function toPatternPhrase(pattern: string): string {
  const parts = pattern.split('*').map(part => toPhrase(part.replace(/["']$|^["']/g, '')));
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), '');
}
