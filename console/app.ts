// The console app: signs in, loads the catalog and shows the view that the URL names.
import { type Endpoint, findEndpoint } from './api/catalog.ts';
import { ApiError, fetchCatalog } from './api/client.ts';
import { h, isPlainClick } from './dom.ts';
import { listenForShortcuts, type Shortcut } from './shortcuts.ts';
import { ALL, pickRange, zoomTo } from './time-range.ts';
import { readToken, removeToken, saveToken, takeTokenFromUrl } from './token.ts';
import { parseUrlState, toSearch, type UrlState } from './url-state.ts';
import { defineAlertsView } from './views/alerts.ts';
import { defineEndpointView } from './views/endpoint.ts';
import { defineFunctionsView } from './views/functions.ts';
import { defineLogSearchView } from './views/log-search.ts';
import { defineLogsView } from './views/logs.ts';
import { defineOverviewView, OVERVIEW_ENDPOINTS } from './views/overview.ts';
import { createProjectPrompt } from './views/project-prompt.ts';
import { createShell, type Shell } from './views/shell.ts';
import { createSignInPage, createTokenChoicePage, createWaitingPage } from './views/sign-in.ts';
import { defineUsageView } from './views/usage.ts';
import type { OpenLogs, View, ViewDefinition } from './views/view.ts';

/** The endpoints that have a specialized view, in the order of the navigation. */
const BUILT_IN_VIEWS = new Map<string, (endpoint: Endpoint, catalog: readonly Endpoint[]) => ViewDefinition>([
  ['functions.invocation-stats', defineFunctionsView],
  ['usage.api-counts', defineUsageView],
  ['logs.search', defineLogSearchView],
  ['logs.all', defineLogsView],
]);

/** The endpoints that the view of logs.search uses. If there is this view, they have no view of their own. */
const SEARCH_ENDPOINTS = [
  ...['logs.histogram', 'logs.fields', 'logs.record'],
  ...['logs.top', 'logs.patterns', 'logs.compare'],
];

export class ConsoleApp {
  readonly #host: HTMLElement;
  #catalog: readonly Endpoint[] = [];
  #views: readonly ViewDefinition[] = [];
  #shell: Shell | undefined;
  #open: { definition: ViewDefinition; view: View } | undefined;
  /** The last settings of each view, by its name. */
  readonly #lastSettings = new Map<string, UrlState['settings']>();
  #state: UrlState = parseUrlState('');
  /** The query string of the URL that is shown. */
  #renderedSearch: string | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(host: HTMLElement) {
    this.#host = host;
    listenForShortcuts(() => this.#listShortcuts());
    // Also fired when only the fragment changes: by a link that skips to the content, or by a link with a token.
    addEventListener('popstate', () => {
      const token = takeTokenFromUrl();
      if (token !== undefined) this.#openLink(token);
      else if (location.search !== this.#renderedSearch) this.#render();
    });
  }

  /** Opens the console with the token of the URL or the saved one, or shows the sign-in page. */
  open(): void {
    const token = takeTokenFromUrl();
    if (token === undefined) void this.#start();
    else this.#openLink(token);
  }

  /** Asks before the token of a link replaces another one: the link can be from anyone. */
  #openLink(token: string): void {
    const start = () => void this.#start();
    const startWithToken = () => {
      saveToken(token);
      start();
    };
    const saved = readToken();
    if (saved === undefined || saved === token) {
      startWithToken();
      return;
    }
    const page = createTokenChoicePage({ onKeep: start, onReplace: startWithToken });
    this.#showPage(page);
    page.querySelector('button')?.focus();
  }

  /** Opens the console with the saved token, or shows the sign-in page. Retries while the server is unavailable. */
  async #start(): Promise<void> {
    if (readToken() === undefined) return this.#signIn(undefined);
    try {
      this.#openShell(await fetchCatalog());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 'unauthorized' || error.code === 'forbidden') return this.#signIn(error.message);
      this.#showPage(createWaitingPage(error));
      this.#retry = setTimeout(() => void this.#start(), (error.retryAfterSeconds ?? 5) * 1000);
    }
  }

  #signIn(error: string | undefined): void {
    removeToken();
    const page = createSignInPage(error, (token, isKept) => {
      saveToken(token, isKept);
      void this.#start();
    });
    this.#showPage(page);
    page.querySelector('input')?.focus();
  }

  #openShell(catalog: readonly Endpoint[]): void {
    this.#catalog = catalog;
    this.#views = defineViews(catalog);
    this.#closeView();
    this.#shell = createShell({
      catalog,
      views: this.#views,
      listShortcuts: () => this.#listShortcuts(),
      stateOf: view => ({
        view: view.name,
        project: this.#state.project,
        settings: {
          ...(this.#lastSettings.get(view.name) ?? view.defaults),
          ...pickRange(this.#state.settings),
        },
      }),
      navigate: state => this.#navigate(state),
      onProjectChange: project => this.#navigate(this.#withProject(project)),
      onRangeChange: settings => this.#navigate(this.#withFirstPage(settings)),
      onCompare: hasAll(catalog, ['logs.search', 'logs.compare']) ? () => this.#compare() : undefined,
      onSignOut: () => this.#signIn(undefined),
    });
    this.#host.replaceChildren(this.#shell.element);
    this.#render();
  }

  #listShortcuts(): readonly Shortcut[] {
    return [...(this.#shell?.shortcuts ?? []), ...(this.#open?.view.shortcuts ?? [])];
  }

  #navigate(state: UrlState): void {
    history.pushState(null, '', toSearch(state));
    this.#render();
  }

  /** The state of the current view with another project. A page belongs to one project, so it is the first page. */
  #withProject(project: string): UrlState {
    return { ...this.#withFirstPage({}), project };
  }

  #withFirstPage(changed: UrlState['settings']): UrlState {
    const { view, settings } = this.#state;
    const firstPage = this.#views.find(({ name }) => name === view)?.firstPage;
    return { ...this.#state, settings: { ...settings, ...firstPage, ...changed } };
  }

  /** Makes all views open at the first page. */
  #leavePages(): void {
    for (const { name, firstPage } of this.#views) {
      const settings = this.#lastSettings.get(name);
      if (settings !== undefined) this.#lastSettings.set(name, { ...settings, ...firstPage });
    }
  }

  /** Shows the state of the URL. Adds defaults to the URL, so that a copied link is complete. */
  #render(): void {
    const state = parseUrlState(location.search);
    if (state.project !== this.#state.project) this.#leavePages();
    const definition = this.#views.find(({ name }) => name === state.view) ?? this.#views[0];
    if (definition === undefined || this.#shell === undefined) return;
    const settings = definition.name === state.view ? state.settings : {};
    this.#state = {
      view: definition.name,
      project: state.project,
      settings: { ...definition.defaults, ...settings, ...pickRange(state.settings) },
    };
    history.replaceState(null, '', toSearch(this.#state));
    this.#renderedSearch = location.search;
    this.#lastSettings.set(definition.name, this.#state.settings);
    if (this.#open?.definition !== definition) {
      this.#closeView();
      this.#open = { definition, view: this.#openView(definition) };
    }
    this.#shell.show(this.#state, definition, this.#open.view.element);
    const shown = { ...definition.implied, ...this.#state.settings };
    this.#open.view.show({ ...this.#state, settings: shown });
  }

  #openView(definition: ViewDefinition): View {
    return definition.open({
      catalog: this.#catalog,
      logsOpenerFor: kind => this.#logsOpenerFor(kind),
      linkToLogs: (text, kind, settings = { range: ALL }) => this.#linkToLogs(text, kind, settings),
      linkToView: (text, view, settings) => this.#linkToView(text, view, settings),
      linkToProject: project => this.#linkToProject(project),
      updateSettings: settings => this.#navigate(this.#withSettings(settings)),
      toLink: settings => toSearch(this.#withSettings(settings)),
      onUnauthorized: error => this.#signIn(error.message),
      createProjectPrompt: () => this.#createProjectPrompt(),
      markInvalid: param => this.#shell?.markInvalid(param),
    });
  }

  #withSettings(settings: UrlState['settings']): UrlState {
    return { ...this.#state, settings: { ...this.#state.settings, ...settings } };
  }

  #createProjectPrompt(): HTMLElement {
    return createProjectPrompt({
      catalog: this.#catalog,
      linkToProject: project => this.#linkToProject(project),
      replaceWithProject: project => {
        history.replaceState(null, '', toSearch(this.#withProject(project)));
        this.#render();
      },
      onUnauthorized: error => this.#signIn(error.message),
    });
  }

  #linkToProject(project: string): HTMLElement {
    return this.#createLink(project, 'mono', this.#withProject(project));
  }

  #linkToLogs(text: string, kind: string, settings: UrlState['settings']): HTMLElement {
    const toState = this.#findLogs(kind);
    if (toState === undefined) return h('span', {}, text);
    return this.#createLink(text, undefined, toState(settings));
  }

  #linkToView(text: string, view: string, settings: UrlState['settings']): HTMLElement {
    if (!this.#views.some(({ name }) => name === view)) return h('span', {}, text);
    return this.#createLink(text, undefined, { view, project: this.#state.project, settings });
  }

  /** Shows what is different in the time range from the time around it: in the search of the logs view, or in what another view shows. */
  #compare(): void {
    const compare = { tab: 'compare', against: 'time' };
    const { view, project, settings } = this.#withFirstPage(compare);
    const { kind = 'all', toQuery } = this.#open?.definition ?? {};
    const others = { ...pickRange(settings), ...compare, kind, query: toQuery?.(settings) ?? '' };
    this.#navigate({ view: 'logs', project, settings: view === 'logs' ? settings : others });
  }

  #createLink(text: string, className: string | undefined, state: UrlState): HTMLElement {
    const link = h('a', { class: className, href: toSearch(state) }, text);
    // Keeps the focus in the project field: when the field loses it, it opens the project that the user has typed.
    link.addEventListener('mousedown', event => event.preventDefault());
    link.addEventListener('click', event => {
      if (!isPlainClick(event)) return;
      event.preventDefault();
      this.#navigate(state);
    });
    return link;
  }

  #logsOpenerFor(kind: string): OpenLogs | undefined {
    const toState = this.#findLogs(kind);
    return toState && ((range, query = '') => this.#navigate(toState({ ...zoomTo(range), query })));
  }

  /** Returns a function that creates the state of the logs view; undefined if that view cannot show this log kind. */
  #findLogs(kind: string) {
    const logs = this.#views.find(({ name }) => name === 'logs');
    const canSearch = findEndpoint(this.#catalog, 'logs.search') !== undefined;
    if (logs === undefined || (kind !== 'edge' && !canSearch)) return undefined;
    const filter = canSearch ? { kind } : {};
    return (settings: UrlState['settings']): UrlState => ({
      view: logs.name,
      project: this.#state.project,
      settings: { ...settings, ...filter },
    });
  }

  /** Replaces the shell with a page, such as the sign-in page. */
  #showPage(page: HTMLElement): void {
    clearTimeout(this.#retry);
    this.#closeView();
    this.#shell = undefined;
    document.title = 'Dendro';
    this.#host.replaceChildren(page);
  }

  #closeView(): void {
    this.#open?.view.close();
    this.#open = undefined;
  }
}

const hasAll = (catalog: readonly Endpoint[], names: readonly string[]): boolean =>
  names.every(name => findEndpoint(catalog, name) !== undefined);

/** The catalog contains only endpoints that the token can call, so a built-in view can be missing. */
function defineViews(catalog: readonly Endpoint[]): ViewDefinition[] {
  const found = [...BUILT_IN_VIEWS].flatMap(([name, define]) =>
    catalog.filter(endpoint => endpoint.name === name).map(endpoint => define(endpoint, catalog)),
  );
  // logs.search and logs.all both define the view `logs`. Only the first one is kept, because it can do more.
  const builtIn = found.filter(({ name }, i) => found.findIndex(other => other.name === name) === i);
  const hasLogs = builtIn.some(({ name }) => name === 'logs');
  const canSearch = findEndpoint(catalog, 'logs.search') !== undefined;
  // The project field uses projects.active.
  const isUsed = (name: string) =>
    (canSearch && SEARCH_ENDPOINTS.includes(name)) || (hasLogs && name === 'projects.active');
  const others = catalog.filter(({ name }) => !BUILT_IN_VIEWS.has(name) && !isUsed(name));
  const top = findEndpoint(catalog, 'logs.top');
  const overview = top !== undefined && hasAll(catalog, OVERVIEW_ENDPOINTS) ? [defineOverviewView(top)] : [];
  const alerts = catalog.some(({ alert }) => alert !== undefined) ? [defineAlertsView()] : [];
  return [...overview, ...builtIn, ...alerts, ...others.map(defineEndpointView)];
}
