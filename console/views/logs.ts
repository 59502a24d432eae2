// Logs: the newest records of the edge request log, and what each of them holds.
import type { Place } from '../address.ts';
import type { Answer, Row } from '../api/answer.ts';
import { ask } from '../api/client.ts';
import { Fault } from '../api/fault.ts';
import { h } from '../dom.ts';
import { formatCount } from '../numbers.ts';
import { Panel, type Question } from '../panel/panel.ts';
import { makeSelect, makeTextField } from '../parts/field.ts';
import { makeSegmented } from '../parts/segmented.ts';
import { microsToIso } from '../times.ts';
import { LogList } from './log-list.ts';
import { boundsOf, CUSTOM, fromLocalField, RANGES, toLocalField } from './log-range.ts';
import type { View, ViewContext, ViewKind } from './view.ts';

const TIERS = [
  { value: 'FREE', label: 'Free · 1 day' },
  { value: 'PRO', label: 'Pro · 7 days' },
  { value: 'PAYG', label: 'Pay as you go · 90 days' },
  { value: 'ENTERPRISE', label: 'Enterprise · 90 days' },
];
const REFRESH_SECONDS = 10;
/** The endpoint gives so many at once; when they all came there may be more. */
const PAGE_ROWS = 100;

export const logsView: ViewKind = {
  name: 'logs',
  title: 'Logs',
  endpoint: 'logs.all',
  defaults: { range: 'all', tier: 'FREE' },
  open: openLogs,
};

function openLogs(context: ViewContext): View {
  const { change } = context;
  let place: Place = { view: logsView.name, project: '', settings: {} };
  let newest: readonly Row[] = [];
  let older: readonly Row[] = [];
  const range = makeSegmented('Range', RANGES, value => change({ range: value }));
  const tier = makeSelect('Tier', TIERS, {}, value => change({ tier: value }));
  const moment = (label: string, key: 'start' | 'end') =>
    makeTextField(label, { type: 'datetime-local' }, value =>
      change({ range: CUSTOM, [key]: fromLocalField(value) }),
    );
  const [start, end] = [moment('After', 'start'), moment('Up to', 'end')];
  const custom = h('div', { class: 'controls-group' }, start.element, end.element);
  const list = new LogList();
  const filter = h('input', {
    type: 'search',
    placeholder: 'Filter these records',
    'aria-label': 'Filter these records',
  });
  const count = h('p', { class: 'quiet', role: 'status' });
  const note = h('p', { class: 'note', hidden: true });
  const moreButton = h('button', { type: 'button', class: 'button' }, 'Load older records');

  const applyFilter = () => {
    const shown = list.filter(filter.value);
    const all = newest.length + older.length;
    count.textContent =
      filter.value === ''
        ? `${formatCount(all)} records`
        : `${formatCount(shown)} of ${formatCount(all)} records`;
  };
  const draw = () => {
    list.draw([...newest, ...older]);
    applyFilter();
  };
  filter.addEventListener('input', applyFilter);

  const panel = new Panel({
    content: h(
      'div',
      { class: 'card logs' },
      h('div', { class: 'logs-head' }, filter, count),
      note,
      list.element,
      h('div', { class: 'logs-foot' }, moreButton),
    ),
    draw(answer) {
      older = olderThan(answer.rows, [...newest, ...older]);
      newest = answer.rows;
      note.hidden = !answer.clipped.includes('retention');
      note.textContent = 'The range begins before the retention of the tier; older records are not shown.';
      moreButton.hidden = newest.length + older.length < PAGE_ROWS;
      draw();
    },
    markFault(param) {
      start.setFault(param === 'iso_timestamp_start');
      end.setFault(param === 'iso_timestamp_end');
    },
    context,
  });

  moreButton.addEventListener('click', async () => {
    const last = older.at(-1) ?? newest.at(-1);
    if (last === undefined) return;
    moreButton.disabled = true;
    const asked = place;
    try {
      const page = await askOlder(asked, Number(last['timestamp']));
      if (asked !== place) return; // another project, or another range, is shown by now
      const known = new Set([...newest, ...older].map(keyOf));
      const added = page.rows.filter(row => !known.has(keyOf(row)));
      older = [...older, ...added];
      moreButton.hidden = added.length === 0;
      draw();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (asked !== place) return;
      if (error.code === 'unauthorized') context.onUnauthorized(error);
      else count.textContent = error.message;
    } finally {
      moreButton.disabled = false;
    }
  });

  return {
    element: h(
      'div',
      { class: 'view' },
      h('div', { class: 'controls' }, range.element, tier.element, custom),
      panel.element,
    ),
    show(next) {
      place = next;
      newest = [];
      older = [];
      const chosen = RANGES.some(({ value }) => value === place.settings['range'])
        ? place.settings['range']
        : 'all';
      range.set(chosen ?? 'all');
      custom.hidden = chosen !== CUSTOM;
      tier.set(place.settings['tier'] ?? 'FREE');
      start.set(toLocalField(place.settings['start'] ?? ''));
      end.set(toLocalField(place.settings['end'] ?? ''));
      if (place.project === '') panel.askForProject();
      else panel.ask(toQuestion(place));
    },
    close: () => panel.close(),
  };
}

function parametersOf({ project, settings }: Place): Record<string, string> {
  return { project, project_tier: settings['tier'] ?? 'FREE', ...boundsOf(settings) };
}

function toQuestion(place: Place): Question {
  const seconds = RANGES.find(({ value }) => value === place.settings['range'])?.seconds;
  return {
    endpoint: logsView.endpoint,
    parameters: () => parametersOf(place),
    windowSeconds: undefined,
    refreshSeconds: REFRESH_SECONDS,
    empty: {
      title: `No log records of ${place.project} in this range`,
      hints: [
        'records older than the tier’s retention are not shown: a higher tier, or a wider range, may show more.',
      ],
      log: 'edge request log',
      windowSeconds: seconds,
    },
  };
}

/** Records at the same microsecond as the last one come again, and are told apart by their ids. */
function askOlder(place: Place, lastTimestamp: number): Promise<Answer> {
  return ask(logsView.endpoint, { ...parametersOf(place), iso_timestamp_end: microsToIso(lastTimestamp) });
}

/**
 * What was loaded before and lies behind the newest page, so that a refresh takes nothing away. Where more came since
 * than fits a page, there would be a hole between them: then only the page stays.
 */
function olderThan(page: readonly Row[], loaded: readonly Row[]): readonly Row[] {
  const known = new Set(page.map(keyOf));
  const last = Number(page.at(-1)?.['timestamp'] ?? 0);
  if (page.length >= PAGE_ROWS && last > Number(loaded[0]?.['timestamp'] ?? 0)) return [];
  return loaded.filter(row => Number(row['timestamp']) <= last && !known.has(keyOf(row)));
}

function keyOf(row: Row): string {
  return `${row['timestamp']} ${row['id']}`;
}
