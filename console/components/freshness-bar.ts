// The bar above a result: its age, the time of the newest record, the refresh button and the auto-refresh switch. It
// has its full height even before there is a result, so that the page does not shift.
import { ageSeconds, type QueryResult } from '../api/client.ts';
import { h, replaceChildren } from '../dom.ts';
import { formatDateTime, formatElapsed, formatUtc } from '../format.ts';

export interface FreshnessBar {
  readonly element: HTMLElement;
  readonly isAutoRefreshOn: boolean;
  setAutoRefreshAvailable(isAvailable: boolean): void;
  showResult(result: QueryResult): void;
  /** Shows that a refresh failed while the previous result stays on the page. */
  showError(message: string): void;
  clear(): void;
  close(): void;
}

export interface FreshnessBarOptions {
  onRefresh(): void;
  onAutoRefreshChange(): void;
  readonly autoRefreshLabel: string;
}

export function createFreshnessBar(options: FreshnessBarOptions): FreshnessBar {
  const { onRefresh, onAutoRefreshChange, autoRefreshLabel } = options;
  const text = h('p', { class: 'freshness-text' });
  const autoRefresh = h('input', { type: 'checkbox', role: 'switch', checked: true });
  autoRefresh.addEventListener('change', onAutoRefreshChange);
  const button = h(
    'button',
    { type: 'button', class: 'button', title: 'Run the query now, without the cache' },
    'Refresh',
  );
  button.addEventListener('click', onRefresh);
  const error = h('p', { class: 'freshness-error', role: 'status' });
  let shown: QueryResult | undefined;
  const update = () => {
    if (shown !== undefined) replaceChildren(text, ...describeFreshness(shown));
  };
  const timer = setInterval(update, 1000);
  const autoRefreshSwitch = h(
    'label',
    { class: 'switch', title: 'Pauses while this tab is hidden' },
    autoRefresh,
    h('span', {}, autoRefreshLabel),
  );
  return {
    element: h('div', { class: 'freshness' }, text, error, autoRefreshSwitch, button),
    get isAutoRefreshOn() {
      return autoRefresh.checked;
    },
    setAutoRefreshAvailable(isAvailable) {
      autoRefreshSwitch.hidden = !isAvailable;
    },
    showResult(result) {
      shown = result;
      error.textContent = '';
      update();
    },
    showError(message) {
      error.textContent = `Refresh failed: ${message}`;
    },
    clear() {
      shown = undefined;
      error.textContent = '';
      replaceChildren(text);
    },
    close: () => clearInterval(timer),
  };
}

function describeFreshness(result: QueryResult): Node[] {
  const { ranAt, dataThrough } = result;
  const age = h(
    'span',
    { title: `The query ran at ${formatDateTime(ranAt)} · ${formatUtc(ranAt)}` },
    `Updated ${formatElapsed(ageSeconds(result))} ago`,
  );
  if (dataThrough === undefined) return [age, h('span', {}, 'this log has no records')];
  const lag = formatElapsed(Math.max(0, (ranAt - dataThrough) / 1000));
  const newest = h(
    'span',
    { title: `Newest record of this log, ${lag} before the query ran · ${formatUtc(dataThrough)}` },
    'data up to ',
    h('time', { datetime: new Date(dataThrough).toISOString() }, formatDateTime(dataThrough)),
  );
  return [age, newest];
}
