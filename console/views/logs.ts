// The logs view of a server without the explore pack: the newest records of the edge request log, with a time range, a tier and
// a text filter.
import { type Endpoint, findLongestTier } from '../api/catalog.ts';
import { ApiError, type Row, runQuery } from '../api/client.ts';
import { createRetentionNote } from '../components/messages.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h, replaceChildren } from '../dom.ts';
import { formatCount, formatRecordCount, microsToIso } from '../format.ts';
import { toRowKey } from '../logs/record-fields.ts';
import { findRange, toBounds } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { createWiderAction } from './interval.ts';
import { LogList } from './log-list.ts';
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

export function defineLogsView(endpoint: Endpoint): ViewDefinition {
  return {
    name: 'logs',
    title: 'Logs',
    defaults: {},
    implied: { tier: findLongestTier(endpoint).name },
    open: context => openLogsView(endpoint, context),
  };
}

function openLogsView(endpoint: Endpoint, context: ViewContext): View {
  const records = createRecordCard();
  const ignoredFilter = h('p', { class: 'controls-note', role: 'status' });
  let state: UrlState = { view: '', project: '', settings: {} };
  const panel = new QueryPanel({
    content: records.element,
    render(result) {
      records.showNewest(toLogPage(result), createRetentionNote(result, endpoint, state.settings, context));
    },
    markInvalid: () => {},
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
    shortcuts: panel.shortcuts,
    element: h(
      'div',
      { class: 'view' },
      h('div', { class: 'controls' }, createPackNote(), ignoredFilter),
      panel.element,
    ),
    show(next) {
      state = next;
      records.clear();
      ignoredFilter.textContent = describeIgnoredFilter(state.settings);
      if (state.project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint.name, state, context.updateSettings));
    },
    close: () => panel.close(),
  };
}

/** A link from the logs view with the search can have filters that this view lacks. Returns an empty text if it has none. */
function describeIgnoredFilter({ kind = 'edge', query = '' }: UrlState['settings']): string {
  const ignored = [kind === 'edge' ? '' : `the log kind ${kind}`, query === '' ? '' : `the search ${query}`];
  const names = ignored.filter(text => text !== '').join(' and ');
  return names === ''
    ? ''
    : `This page has no search, so it ignores ${names} of the link and shows all edge requests.`;
}

function createPackNote(): HTMLElement {
  return h(
    'p',
    { class: 'controls-note' },
    'To search all log kinds, use a token that may call logs.search. If there is none, the operator has turned the search off with ',
    h('code', {}, '--packs none'),
    '.',
  );
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
  const retentionNote = h('div', {});
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
      h('div', { class: 'page-buttons' }, loadOlderButton),
    ),
    loadOlderButton,
    nextEnd: () => nextEnd,
    showNewest(page: LogPage, note: HTMLElement | undefined) {
      const kept = keepOlder(page, [...newest, ...older]);
      if (kept.length === 0) {
        clear();
        continueAfter(page);
      }
      newest = page.rows;
      older = kept;
      replaceChildren(retentionNote, note);
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

function createQuery(
  endpoint: string,
  state: UrlState,
  updateSettings: ViewContext['updateSettings'],
): Query {
  const { start = '', end = '' } = state.settings;
  return {
    endpoint,
    parameters: () => createParameters(state),
    windowSeconds: undefined,
    refreshSeconds: REFRESH_SECONDS,
    swapRange: () => updateSettings({ start: end, end: start }),
    emptyState: {
      title: `No log records of project ${state.project} in this time range`,
      hints: [],
      log: 'edge request log',
      source: { kind: 'edge', project: state.project },
      windowSeconds: findRange(state.settings)?.seconds,
      widerRangeAction: createWiderAction(state.settings, updateSettings),
    },
  };
}

function createParameters({ project, settings }: UrlState): Record<string, string> {
  return { project, project_tier: settings['tier'] ?? '', ...toBounds(settings) };
}
