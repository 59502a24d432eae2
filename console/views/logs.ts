// The logs view: the newest records of the edge request log, with a time range, a tier and a text filter.
import { type Choices, type Endpoint, readChoices } from '../api/catalog.ts';
import { ApiError, type Row, runQuery } from '../api/client.ts';
import {
  createSegmentedControl,
  createSelect,
  createTextField,
  type Option,
} from '../components/controls.ts';
import { RETENTION_NOTE } from '../components/messages.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import {
  formatCount,
  formatDuration,
  formatPeriod,
  formatRecordCount,
  formatShortDuration,
  microsToIso,
} from '../format.ts';
import type { UrlState } from '../url-state.ts';
import { LogList, toRowKey } from './log-list.ts';
import {
  describeSkipped,
  findNextEnd,
  keepOlder,
  type LogPage,
  type PageEnd,
  toLogPage,
} from './log-pages.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

const REFRESH_SECONDS = 10;

interface Range extends Option {
  /** The length of a range that ends now; undefined for other ranges. */
  readonly seconds?: number;
}

const ALL = 'all';
const CUSTOM = 'custom';

const RANGES: readonly Range[] = [
  createRelativeRange('15min', 900),
  createRelativeRange('1hr', 3600),
  createRelativeRange('1day', 86_400),
  { value: ALL, label: 'All', title: 'All records within the retention of the tier' },
  { value: CUSTOM, label: 'Custom', title: 'A custom time range' },
];

function createRelativeRange(value: string, seconds: number): Range {
  return {
    value,
    label: formatShortDuration(seconds),
    title: `The last ${formatPeriod(seconds)}`,
    seconds,
  };
}

export function defineLogsView(endpoint: Endpoint): ViewDefinition {
  const tiers = readChoices(endpoint, 'project_tier');
  return {
    name: 'logs',
    title: 'Logs',
    defaults: { range: ALL, tier: tiers.default.name },
    open: context => openLogs(endpoint, tiers, context),
  };
}

function openLogs(endpoint: Endpoint, tiers: Choices, context: ViewContext): View {
  const controls = createControls(tiers, context.updateSettings);
  const records = createRecordCard();
  let state: UrlState = { view: '', project: '', settings: {} };
  const panel = new QueryPanel({
    content: records.element,
    render(result) {
      records.showNewest(toLogPage(result), result.clipped.includes('retention'));
    },
    markInvalid: controls.markInvalid,
    context,
  });

  records.loadOlderButton.addEventListener('click', async () => {
    const end = records.nextEnd();
    if (end === undefined) return;
    records.loadOlderButton.disabled = true;
    const requestState = state;
    const parameters = {
      ...createParameters(requestState),
      iso_timestamp_end: microsToIso(end.micros),
    };
    try {
      const page = toLogPage(await runQuery(endpoint.name, parameters));
      // The user may have chosen another project or range in the meantime.
      if (requestState === state) records.appendOlder(page);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (requestState !== state) return;
      if (error.code === 'unauthorized') context.onUnauthorized(error);
      else records.showError(error.message);
    } finally {
      records.loadOlderButton.disabled = false;
    }
  });

  return {
    element: h('div', { class: 'view' }, controls.element, panel.element),
    show(next) {
      state = next;
      records.clear();
      controls.setValues(state.settings);
      if (state.project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint.name, state));
    },
    close: () => panel.close(),
  };
}

function createControls(tiers: Choices, updateSettings: ViewContext['updateSettings']) {
  const range = createSegmentedControl('Range', RANGES, value => updateSettings({ range: value }));
  const tier = createSelect(
    'Tier',
    tiers.all.map(({ name, values }) => ({
      value: name,
      label: `${name} · ${formatDuration(Number(values['retention_days']) * 86_400)}`,
    })),
    {},
    value => updateSettings({ tier: value }),
  );
  const createTimeField = (label: string, key: 'start' | 'end') =>
    createTextField(label, { type: 'datetime-local' }, value =>
      updateSettings({ range: CUSTOM, [key]: fromLocalInput(value) }),
    );
  const start = createTimeField('After', 'start');
  const end = createTimeField('Up to', 'end');
  const customRange = h('div', { class: 'controls-group' }, start.element, end.element);
  return {
    element: h('div', { class: 'controls' }, range.element, tier.element, customRange),
    setValues(settings: UrlState['settings']) {
      const selected = findRange(settings)?.value ?? ALL;
      range.setValue(selected);
      customRange.hidden = selected !== CUSTOM;
      tier.setValue(settings['tier'] ?? '');
      start.setValue(toLocalInput(settings['start'] ?? ''));
      end.setValue(toLocalInput(settings['end'] ?? ''));
    },
    markInvalid(param: string | undefined) {
      start.setInvalid(param === 'iso_timestamp_start');
      end.setInvalid(param === 'iso_timestamp_end');
    },
  };
}

/** The card with the filter, the list of records, and the button that loads older ones. */
function createRecordCard() {
  let newest: readonly Row[] = [];
  let older: readonly Row[] = [];
  let nextEnd: PageEnd | undefined;
  /** The timestamps of which records may be missing, in Unix microseconds. */
  let skipped: readonly number[] = [];
  const list = new LogList();
  const filter = h('input', {
    type: 'search',
    placeholder: 'Filter loaded records',
    'aria-label': 'Filter loaded records',
  });
  const count = h('p', { class: 'muted', role: 'status' });
  const retentionNote = h('p', { class: 'note', hidden: true });
  const skippedNote = h('p', { class: 'note', role: 'status', hidden: true });
  const loadOlderButton = h('button', { type: 'button', class: 'button' }, 'Load older records');
  const applyFilter = () => {
    const matching = formatCount(list.filter(filter.value));
    const all = formatRecordCount(newest.length + older.length);
    count.textContent = filter.value === '' ? all : `${matching} of ${all}`;
  };
  const continueAfter = (page: LogPage) => {
    nextEnd = findNextEnd(page);
    if (nextEnd?.skippedMicros !== undefined) skipped = [...skipped, nextEnd.skippedMicros];
  };
  const render = () => {
    list.render([...newest, ...older]);
    loadOlderButton.hidden = nextEnd === undefined;
    skippedNote.hidden = skipped.length === 0;
    skippedNote.textContent = describeSkipped(skipped);
    applyFilter();
  };
  const clear = () => {
    newest = [];
    older = [];
    nextEnd = undefined;
    skipped = [];
  };
  filter.addEventListener('input', applyFilter);
  return {
    element: h(
      'div',
      { class: 'card logs' },
      h('div', { class: 'logs-header' }, filter, count),
      retentionNote,
      list.element,
      skippedNote,
      h('div', { class: 'logs-footer' }, loadOlderButton),
    ),
    loadOlderButton,
    nextEnd: () => nextEnd,
    showNewest(page: LogPage, isClipped: boolean) {
      const kept = keepOlder(page, [...newest, ...older]);
      if (kept.length === 0) {
        clear();
        continueAfter(page);
      }
      newest = page.rows;
      older = kept;
      retentionNote.hidden = !isClipped;
      retentionNote.textContent = isClipped ? RETENTION_NOTE : '';
      render();
    },
    appendOlder(page: LogPage) {
      const loaded = new Set([...newest, ...older].map(toRowKey));
      older = [...older, ...page.rows.filter(row => !loaded.has(toRowKey(row)))];
      continueAfter(page);
      render();
    },
    showError(message: string) {
      count.textContent = message;
    },
    clear,
  };
}

function createQuery(endpoint: string, state: UrlState): Query {
  return {
    endpoint,
    parameters: () => createParameters(state),
    windowSeconds: undefined,
    refreshSeconds: REFRESH_SECONDS,
    emptyState: {
      title: `No log records of project ${state.project} in this time range`,
      hints: [
        'Records older than the retention of the tier are not shown. A higher tier or a longer range may show more.',
      ],
      log: 'edge request log',
      windowSeconds: findRange(state.settings)?.seconds,
    },
  };
}

function createParameters({ project, settings }: UrlState): Record<string, string> {
  const common = { project, project_tier: settings['tier'] ?? '' };
  if (settings['range'] === CUSTOM)
    return {
      ...common,
      iso_timestamp_start: settings['start'] ?? '',
      iso_timestamp_end: settings['end'] ?? '',
    };
  const seconds = findRange(settings)?.seconds;
  const start = seconds === undefined ? '' : new Date(Date.now() - seconds * 1000).toISOString();
  return { ...common, iso_timestamp_start: start };
}

function findRange(settings: UrlState['settings']): Range | undefined {
  return RANGES.find(({ value }) => value === settings['range']);
}

/** The value of a datetime-local input; empty if the time is invalid. */
function toLocalInput(iso: string): string {
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return '';
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

function fromLocalInput(value: string): string {
  const ms = Date.parse(value); // in the user's time zone, because the value has no offset
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().replace('.000Z', 'Z');
}
