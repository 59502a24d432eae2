// The alerts view: all alerts of the server, their instances, and their problems of the last 7 days on a time line. It only reads: a
// silence needs the internal listener, so the view shows the command for it.
import { type Alert, ApiError, fetchAlerts, fetchInternalUrl } from '../api/client.ts';
import { createTable } from '../components/data-table.ts';
import { createLoadingMessage } from '../components/messages.ts';
import { h, replaceChildren } from '../dom.ts';
import { formatDateTime, formatElapsed } from '../format.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

const REFRESH_MS = 15_000;
const HISTORY_MS = 7 * 86_400_000;

export function defineAlertsView(): ViewDefinition {
  return { name: 'alerts', title: 'Alerts', defaults: {}, open: openAlerts };
}

function openAlerts({ onUnauthorized }: ViewContext): View {
  const element = h('div', { class: 'view alerts' }, createLoadingMessage());
  const closing = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let shown = '';
  const load = async () => {
    try {
      const alerts = await fetchAlerts(closing.signal);
      const content = JSON.stringify(alerts.map(alert => ({ ...alert, last_evaluated_at: undefined })));
      if (content !== shown) update(element, createCards(alerts));
      shown = content;
    } catch (error) {
      if (closing.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 'unauthorized') return onUnauthorized(error);
      shown = '';
      const title = h('h2', {}, 'The alerts cannot be shown');
      replaceChildren(
        element,
        h('div', { class: 'message error', role: 'alert' }, title, h('p', {}, error.message)),
      );
    }
    timer = setTimeout(() => void load(), REFRESH_MS);
  };
  return {
    element,
    show() {
      if (timer === undefined && shown === '') void load();
    },
    close() {
      closing.abort();
      clearTimeout(timer);
    },
  };
}

/** Keeps what the user has opened, and the focus on it. */
function update(element: HTMLElement, cards: readonly HTMLElement[]): void {
  const opened = new Set([...element.querySelectorAll('details[open]')].map(({ id }) => id));
  const focused = document.activeElement?.closest('details')?.id;
  replaceChildren(element, ...cards);
  for (const details of element.querySelectorAll('details')) {
    details.open = opened.has(details.id);
    if (details.id === focused) details.querySelector('summary')?.focus();
  }
}

/** Those that need attention first. */
const ORDER: readonly Alert['state'][] = ['error', 'firing', 'pending', 'ok', 'removed'];

function createCards(alerts: readonly Alert[]): HTMLElement[] {
  if (alerts.length === 0)
    return [h('div', { class: 'message', role: 'status' }, h('h2', {}, 'No endpoint declares an alert'))];
  const now = Date.now();
  return alerts
    .toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || (a.name < b.name ? -1 : 1))
    .map(alert => createCard(alert, now));
}

function createCard(alert: Alert, now: number): HTMLElement {
  const { name, state, severity, instances, history, silenced_until, undelivered } = alert;
  const notes = [
    severity,
    ...(alert.every_seconds === null ? [] : [`every ${formatElapsed(alert.every_seconds)}`]),
    ...(silenced_until === null ? [] : [`silenced until ${formatDateTime(Date.parse(silenced_until))}`]),
    ...(undelivered === 0 ? [] : [`${undelivered} notifications wait`]),
    ...(alert.missed_evaluations === 0 ? [] : [`${alert.missed_evaluations} evaluations missed`]),
  ];
  return h(
    'section',
    { class: 'card alert', 'aria-label': name },
    h(
      'div',
      { class: 'card-header' },
      h('h2', { class: 'mono' }, name),
      h('span', { class: `alert-state ${state}` }, state),
      h('p', { class: 'muted' }, notes.join(' · ')),
    ),
    createTimeLine(alert, now),
    instances.length === 0 ? undefined : createInstances(alert),
    history.length === 0 ? undefined : createHistory(alert),
    state === 'removed' ? undefined : createSilenceHelp(name),
  );
}

/** A bar for each problem, from its start to its end. */
function createTimeLine({ instances, history }: Alert, now: number): HTMLElement {
  const firing = instances.filter(({ state }) => state === 'firing');
  const periods = [
    ...history.map(({ started_at, ended_at, summary }) => ({ started_at, ended_at, summary, isOver: true })),
    ...firing.map(({ started_at, summary }) => ({ started_at, ended_at: '', summary, isOver: false })),
  ];
  const bars = periods.map(({ started_at, ended_at, summary, isOver }) => {
    const start = Math.max(0, 1 - (now - Date.parse(started_at)) / HISTORY_MS);
    const end = isOver ? Math.max(0, 1 - (now - Date.parse(ended_at)) / HISTORY_MS) : 1;
    const bar = h('span', { class: isOver ? 'over' : 'firing', title: summary });
    bar.style.left = `min(${100 * start}%, 100% - 3px)`; // a problem that has just begun is visible, too
    bar.style.width = `${100 * (end - start)}%`;
    return bar;
  });
  const label = `Last 7 days: ${history.length} problems resolved, ${firing.length} firing`;
  return h(
    'div',
    { class: 'alert-history' },
    h('div', { class: 'alert-line', role: 'img', 'aria-label': label }, ...bars),
    h(
      'div',
      { class: 'alert-axis muted', 'aria-hidden': 'true' },
      h('span', {}, '7 days ago'),
      h('span', {}, 'now'),
    ),
  );
}

function createInstances({ name, instances }: Alert): HTMLElement {
  const rows = instances.map(({ state, cause, started_at, summary }) => [
    cause === 'error' ? 'error' : state,
    formatDateTime(Date.parse(started_at)),
    summary,
  ]);
  return createTable(
    `Instances of ${name}`,
    [{ heading: 'State' }, { heading: 'Since' }, { heading: 'Problem' }],
    rows,
  );
}

function createHistory({ name, history }: Alert): HTMLElement {
  const columns = [{ heading: 'From' }, { heading: 'To' }, { heading: 'Problem' }, { heading: 'End' }];
  const rows = history
    .toReversed()
    .map(({ started_at, ended_at, summary, reason }) => [
      formatDateTime(Date.parse(started_at)),
      formatDateTime(Date.parse(ended_at)),
      summary,
      reason ?? '',
    ]);
  return h(
    'details',
    { class: 'alert-details', id: `history ${name}` },
    h('summary', {}, `Resolved in the last 7 days (${history.length})`),
    createTable(`Resolved instances of ${name}`, columns, rows),
  );
}

function createSilenceHelp(name: string): HTMLElement {
  const command = h('pre', { tabindex: 0, 'aria-label': 'Command' });
  void fetchInternalUrl().then(url => {
    command.textContent = `dendro alert silence '${name}' --for 2h --url ${url}`;
  });
  return h(
    'details',
    { class: 'alert-details', id: `silence ${name}` },
    h('summary', {}, 'Silence'),
    h('p', {}, 'With a token of the scope admin, and the URL of the internal listener:'),
    command,
  );
}
