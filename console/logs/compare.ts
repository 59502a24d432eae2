// The tab "What is different?": the field values whose share differs most between the records of a search and other records, from
// logs.compare. The others are those of the same time range that do not match, or those of the time around it.
import type { Row } from '../api/client.ts';
import { createSegmentedControl } from '../components/controls.ts';
import { QueryPanel } from '../components/query-panel.ts';
import { type Child, h, replaceChildren } from '../dom.ts';
import { formatCount, formatPercent, formatRecordCount } from '../format.ts';
import { toSpan } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import type { SearchTab, TabOptions } from './patterns.ts';
import { toTerm } from './search-expression.ts';
import { toFilterKey, toFilters } from './search-state.ts';

const TIME = 'time';
const OTHERS = 'others';

export function createCompareTab(
  { onTerm, ...options }: TabOptions,
  updateSettings: (settings: UrlState['settings']) => void,
): SearchTab {
  const against = createSegmentedControl(
    'Compare with',
    [
      { value: OTHERS, label: 'Other records of this range' },
      { value: TIME, label: 'The time around this range' },
    ],
    value => updateSettings({ against: value }),
  );
  const text = h('p', { class: 'muted' });
  const list = h('ol', { class: 'differences' });
  const unknown = h('div', {});
  const panel = new QueryPanel({
    ...options,
    content: h('div', { class: 'card stack' }, text, list),
    render: ({ rows }) => {
      replaceChildren(text, ...describeSamples(rows[0]));
      replaceChildren(list, ...rows.map(row => createDifference(row, onTerm)));
    },
  });
  return {
    element: h('div', { class: 'stack' }, against.element, unknown, panel.element),
    show(state) {
      const { query = '', against: chosen } = state.settings;
      const baseline = findBaseline(state);
      // Without an expression, all records match, and there are no others.
      const mode = query === '' || (chosen === TIME && baseline !== undefined) ? TIME : OTHERS;
      against.setValue(mode);
      against.element.hidden = query === '' || baseline === undefined;
      const isUnknown = mode === TIME && baseline === undefined;
      replaceChildren(unknown, isUnknown ? createUnknownMessage() : undefined);
      unknown.hidden = !isUnknown;
      panel.element.hidden = isUnknown;
      if (isUnknown) return panel.stop();
      panel.run({
        endpoint: 'logs.compare',
        key: `${toFilterKey(state)} ${mode}`,
        parameters: () => ({ ...toFilters(state), ...(mode === TIME ? findBaseline(state) : {}) }),
        windowSeconds: undefined,
        refreshSeconds: undefined,
        emptyState: {
          title: 'No differences',
          hints: ['One of the two sides has no records, or all values are as frequent on both sides.'],
          log: 'log',
          windowSeconds: undefined,
        },
      });
    },
    stop: () => panel.stop(),
    close: () => panel.close(),
  };
}

function createUnknownMessage(): HTMLElement {
  return h(
    'div',
    { class: 'message', role: 'status' },
    h('h2', {}, 'Nothing to compare with'),
    h('p', {}, 'Drag over a chart to select a time range, or enter a search expression.'),
  );
}

/** Two lengths of the range before it and after it, but not after now. The server leaves out the range itself. */
function findBaseline({ settings }: UrlState): Record<string, string> | undefined {
  const { startMs, endMs } = toSpan(settings);
  if (startMs === 0) return undefined;
  const length = endMs - startMs;
  const [start, end] = [startMs - 2 * length, Math.min(endMs + 2 * length, Math.max(endMs, Date.now()))];
  return { baseline_start: new Date(start).toISOString(), baseline_end: new Date(end).toISOString() };
}

function describeSamples(row: Row | undefined): Child[] {
  const [total, others] = [row?.['total'], row?.['other_total']].map(Number);
  const isSampled = Number(row?.['sampled']) < (total ?? 0) || Number(row?.['other_sampled']) < (others ?? 0);
  const sample = isSampled ? ', by samples of them' : '';
  const swatch = (color: string) => h('i', { class: `swatch ${color}` });
  return [
    ...[swatch('chart-amber'), ` ${formatRecordCount(total ?? 0)} compared with `],
    ...[
      swatch('chart-gray'),
      ` ${formatCount(others ?? 0)} others${sample}. The largest difference is first.`,
    ],
  ];
}

function createDifference(row: Row, onTerm: TabOptions['onTerm']): HTMLElement {
  const [field, value] = [String(row['field']), String(row['value'])];
  const bar = (share: number, label: string, className: string) => {
    const fill = h('i', { class: className });
    fill.style.width = `${share * 100}%`;
    return h(
      'span',
      { class: 'difference-bar' },
      h('span', { class: 'visually-hidden' }, `${label} `),
      h('span', { class: 'difference-track' }, fill),
      h('span', { class: 'difference-share' }, formatPercent(share)),
    );
  };
  return h(
    'li',
    {},
    h(
      'button',
      {
        type: 'button',
        class: 'difference',
        title: 'Show the records with this value',
        on: { click: () => onTerm(toTerm(field, value, false)) },
      },
      h(
        'span',
        { class: 'difference-name' },
        h('span', { class: 'muted' }, field),
        ' ',
        h('span', { class: 'mono' }, value),
      ),
      bar(Number(row['share']), 'these records:', 'chart-amber'),
      bar(Number(row['other_share']), 'the others:', 'chart-gray'),
    ),
  );
}
