// The alerts on the start page: what fires in a project now, and the alerts whose query fails.
import { type Alert, ApiError, fetchAlerts } from '../api/client.ts';
import { h, replaceChildren } from '../dom.ts';
import { formatDateTime, microsToIso } from '../format.ts';
import { ALL_KINDS } from '../logs/kinds.ts';
import { CUSTOM, pickRange } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import type { ViewContext } from './view.ts';

/** The records of a problem begin this long before it: it takes a while until an alert fires. */
const LEAD_MS = 15 * 60_000;

type Instance = Alert['instances'][number];

export class FiringAlerts {
  readonly element = h('section', {
    class: 'card overview-section overview-alerts',
    'aria-label': 'Alerts',
    hidden: true,
  });
  readonly #context: ViewContext;
  #isAvailable: boolean;
  #request: AbortController | undefined;

  constructor(context: ViewContext) {
    this.#context = context;
    this.#isAvailable = context.catalog.some(({ alert }) => alert !== undefined);
  }

  async load({ project, settings }: UrlState): Promise<void> {
    if (!this.#isAvailable) return;
    this.#request?.abort();
    const request = new AbortController();
    this.#request = request;
    try {
      const alerts = await fetchAlerts(request.signal);
      const lines = alerts.flatMap(alert =>
        alert.instances
          .filter(instance => isShown(instance, project))
          .map(instance => this.#createLine(alert, instance, settings)),
      );
      this.#show('Alerts that fire', lines.length === 0 ? undefined : h('ul', {}, ...lines));
    } catch (error) {
      if (request.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      // The server does not evaluate alerts, or the token may not see them.
      this.#isAvailable = error.code !== 'forbidden' && error.code !== 'not_found';
      this.#show('The alerts cannot be shown', this.#isAvailable ? h('p', {}, error.message) : undefined);
    }
  }

  clear(): void {
    this.#request?.abort();
    this.element.hidden = true;
  }

  close(): void {
    this.#request?.abort();
  }

  #show(title: string, body: HTMLElement | undefined): void {
    this.element.hidden = body === undefined;
    replaceChildren(this.element, h('h2', {}, title), body);
  }

  #createLine({ name }: Alert, instance: Instance, settings: UrlState['settings']): HTMLElement {
    const { cause, started_at, summary } = instance;
    const startMs = Date.parse(started_at);
    const state = cause === 'error' ? 'error' : 'firing';
    const since = `since ${formatDateTime(startMs)}`;
    const range = { range: CUSTOM, start: microsToIso((startMs - LEAD_MS) * 1000), end: '' };
    return h(
      'li',
      { class: 'alert-entry' },
      h('span', { class: `alert-state ${state}` }, state),
      this.#context.linkToView(name, 'alerts', pickRange(settings)),
      h('span', { class: 'alert-summary' }, summary),
      h('small', {}, state === 'error' ? since : this.#context.linkToLogs(since, ALL_KINDS, range)),
    );
  }
}

/** A problem without a project, such as a log kind without new records, concerns every project. */
const isShown = ({ state, cause, key }: Instance, project: string): boolean =>
  (state === 'firing' || cause === 'error') && [undefined, project].includes(key['project'] as string);
