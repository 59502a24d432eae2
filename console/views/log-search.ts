// The logs view of a server with the explore pack: search in all log kinds, with a histogram, pages, a live tail, and links to
// single records.
import { type Choices, type Endpoint, findEndpoint, findLongestTier, readChoices } from '../api/catalog.ts';
import { type QueryResult, type Row, runQuery } from '../api/client.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import { createCopyButton, createSelect } from '../components/controls.ts';
import { createInvalidPageMessage, createRetentionNote } from '../components/messages.ts';
import { type Query, QueryPanel, type QueryRequest } from '../components/query-panel.ts';
import { h, setAttribute } from '../dom.ts';
import { microsToIso } from '../format.ts';
import { createColumnChooser } from '../logs/column-chooser.ts';
import { createCompareTab } from '../logs/compare.ts';
import { toCurl } from '../logs/curl.ts';
import { createDownloadButton } from '../logs/download.ts';
import { describeEmptySearch } from '../logs/empty-search.ts';
import { Facets } from '../logs/facets.ts';
import { toCategoryTerm } from '../logs/histogram.ts';
import { HistogramLoader } from '../logs/histogram-loader.ts';
import { ALL_KINDS, chooseColumns, findKind, type LogColumn, listFields, readKind } from '../logs/kinds.ts';
import { findTailStart, type Page } from '../logs/live-tail.ts';
import { createPatternsTab, type SearchTab, type TabOptions } from '../logs/patterns.ts';
import type { RecordPage } from '../logs/record-details.ts';
import { listPaths } from '../logs/record-fields.ts';
import { ResultCard } from '../logs/result-card.ts';
import { createSavedSearches } from '../logs/saved-searches.ts';
import { createSearchBox } from '../logs/search-box.ts';
import { addTerm, formatTerm, toggleTerm, toPhrase } from '../logs/search-expression.ts';
import * as search from '../logs/search-state.ts';
import type { Shortcut } from '../shortcuts.ts';
import { type Bounds, describeRange, isOpenEnded, zoomTo } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { LogList } from './log-list.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

/** The tabs beside the records, by the setting `tab`, with the endpoints that they need. */
const TABS = [
  { name: '', title: 'Records', endpoint: 'logs.search' },
  { name: 'patterns', title: 'Patterns', endpoint: 'logs.patterns' },
  { name: 'compare', title: 'What is different?', endpoint: 'logs.compare' },
] as const;

/** The live tail requests new records this often. */
const TAIL_SECONDS = 3;
/** The live tail loads the whole page again after this time, for records that arrived late. */
const PAGE_SECONDS = 30;

export function defineLogSearchView(endpoint: Endpoint, catalog: readonly Endpoint[]): ViewDefinition {
  const kinds = readChoices(endpoint, 'kind');
  return {
    name: 'logs',
    title: 'Logs',
    defaults: { kind: ALL_KINDS },
    implied: { tier: findLongestTier(endpoint).name },
    firstPage: search.FIRST_PAGE,
    open: context => new LogSearchView({ endpoint, kinds, catalog }, context),
  };
}

interface LogSearchOptions {
  readonly endpoint: Endpoint;
  readonly kinds: Choices;
  readonly catalog: readonly Endpoint[];
}

class LogSearchView implements View {
  readonly element: HTMLElement;
  readonly shortcuts: readonly Shortcut[];
  readonly #catalog: readonly Endpoint[];
  readonly #endpoint: Endpoint;
  readonly #context: ViewContext;
  readonly #searchBox = createSearchBox(
    query => this.#updateFilters({ query }),
    () => this.show(this.#state),
    createSavedSearches({
      getSettings: () => search.toSavedSettings(this.#settings),
      toLink: settings => this.#context.toLink({ ...search.FIRST_PAGE, ...settings }),
      open: settings => this.#updateFilters(settings),
    }),
  );
  readonly #kind: ReturnType<typeof createSelect>;
  readonly #histogram: HistogramLoader;
  readonly #columnChooser = createColumnChooser(
    () => this.#listPaths(),
    columns => this.#context.updateSettings({ columns }),
  );
  readonly #card: ResultCard;
  /** Undefined if the token cannot call logs.top. */
  readonly #facets: Facets | undefined;
  readonly #panel: QueryPanel;
  readonly #tabs: Readonly<Record<string, SearchTab>>;
  readonly #tabButtons: ReadonlyMap<string, HTMLElement>;
  readonly #tabRow = h('div', { class: 'search-tabs', role: 'group', 'aria-label': 'Tabs' });
  #state: UrlState = { view: '', project: '', settings: {} };
  /** The running request asks for new records only. */
  #isTailRequest = false;
  /** The running request is a refresh that the user asked for. */
  #isManualRefresh = false;
  /** When the last query ran, by the server's clock, in Unix milliseconds; undefined if the current list has no result yet. */
  #ranAt: number | undefined;
  /** When the whole page was last requested, in Unix milliseconds. */
  #pageRequestedAt = 0;
  /** The bounds of the page that is requested, and of the page that is shown. */
  #requestedBounds: Bounds = { iso_timestamp_start: '', iso_timestamp_end: '' };
  #shownBounds = this.#requestedBounds;
  /** By cursor: the settings of the page from which the user came to the page with this cursor. */
  readonly #returnPages = new Map<string, search.Settings>();

  constructor({ kinds, endpoint, catalog }: LogSearchOptions, context: ViewContext) {
    this.#catalog = catalog;
    this.#endpoint = endpoint;
    this.#context = context;
    this.#kind = createSelect(
      'Log',
      kinds.all.map(({ name }) => ({ value: name, label: findKind(name).title })),
      {},
      kind => this.#updateFilters({ kind }),
    );
    this.#histogram = new HistogramLoader({
      endpoint: this.#canCall('logs.histogram') ? 'logs.histogram' : undefined,
      onZoom: range => this.#updateFilters(zoomTo(range)),
      onOpenBucket: (bucket, category) => this.#openBar(bucket, category),
      onTotal: total => this.#card.setTotal(total),
    });
    this.#card = new ResultCard({
      onOlder: () => this.#goOlder(this.#card.page, this.#shownBounds),
      onNewer: () => context.updateSettings(this.#returnPages.get(this.#settings['cursor'] ?? '') ?? {}),
      onNewest: () => context.updateSettings(search.FIRST_PAGE),
      onReload: () => this.#panel.run(this.#createSearchQuery()),
      columnChooser: this.#columnChooser.element,
      copyButton: this.#createCopyButton(),
      downloadButton: this.#createDownloadButton(),
    });
    this.#panel = this.#createPanel();
    this.#facets = this.#canCall('logs.top')
      ? new Facets({
          onToggle: term => this.#updateFilters({ query: toggleTerm(this.#settings['query'] ?? '', term) }),
          onKind: kind => this.#updateFilters({ kind }),
          onFields: fields => this.#context.updateSettings({ facets: fields.join() }),
          listPaths: () => this.#listPaths(),
        })
      : undefined;
    this.#facets?.hide();
    this.#tabs = this.#createTabs();
    this.#tabButtons = new Map(
      TABS.filter(({ endpoint }) => this.#canCall(endpoint)).map(({ name, title }) => [
        name,
        h(
          'button',
          { type: 'button', class: 'nav-link', on: { click: () => context.updateSettings({ tab: name }) } },
          title,
        ),
      ]),
    );
    this.#tabRow.append(...this.#tabButtons.values());
    this.shortcuts = [
      { key: '/', description: 'Go to the search box', run: () => this.#searchBox.focus() },
      { key: 'j', description: 'Go to the next record', run: () => this.#card.moveFocus(1) },
      { key: 'k', description: 'Go to the previous record', run: () => this.#card.moveFocus(-1) },
      ...(this.#facets === undefined
        ? []
        : [{ key: 'f', description: 'Go to the facets', run: () => this.#facets?.focus() }]),
      ...this.#panel.shortcuts,
    ];
    this.element = h(
      'div',
      { class: 'view log-search' },
      h('a', { class: 'skip-link', href: '#records' }, 'Skip to the records'),
      h('div', { class: 'search-controls' }, this.#kind.element, this.#searchBox.element),
      this.#histogram.element,
      this.#tabRow,
      h(
        'div',
        { class: 'logs-layout' },
        this.#facets?.element,
        this.#panel.element,
        ...Object.values(this.#tabs).map(({ element }) => element),
      ),
    );
  }

  show(state: UrlState): void {
    const { settings, project } = state;
    const isOtherList = search.toListKey(state) !== search.toListKey(this.#state);
    this.#state = state;
    this.#kind.setValue(settings['kind'] ?? '');
    this.#searchBox.setValue(settings['query'] ?? '');
    this.#searchBox.setSource({
      fields: [...this.#fields, ...(this.#kindName === ALL_KINDS ? ['kind'] : [])],
      listPaths: () => this.#listPaths(),
      parameters: project !== '' && this.#canCall('logs.fields') ? search.toFilters(state) : undefined,
    });
    this.#columnChooser.show(this.#kindName, settings['columns'] ?? '');
    if (isOtherList) this.#startList();
    const tab = project === '' || this.#isRecordPage ? undefined : this.#tabs[settings['tab'] ?? ''];
    this.#showTab(tab);
    if (project === '' || this.#isRecordPage || tab === this.#tabs['compare']) this.#facets?.hide();
    else if (tab !== undefined) this.#facets?.show(state, this.#fields, false);
    this.#tabRow.hidden = project === '' || this.#isRecordPage || this.#tabButtons.size === 1;
    if (project === '') {
      this.#histogram.hide();
      this.#panel.promptForProject();
    } else if (this.#isRecordPage) {
      this.#histogram.hide();
      this.#panel.run(this.#createRecordQuery());
    } else {
      if (tab === undefined) this.#panel.run(this.#createSearchQuery());
      else tab.show(state);
      void this.#histogram.load(state);
    }
  }

  /** Undefined: the records. */
  #showTab(shown: SearchTab | undefined): void {
    for (const tab of Object.values(this.#tabs)) {
      tab.element.hidden = tab !== shown;
      if (tab !== shown) tab.stop();
    }
    this.#panel.element.hidden = shown !== undefined;
    if (shown !== undefined) this.#panel.stop();
    for (const [name, button] of this.#tabButtons)
      setAttribute(button, 'aria-current', this.#tabs[name] === shown ? 'true' : undefined);
  }

  #createTabs(): Record<string, SearchTab> {
    const options: TabOptions = {
      context: this.#context,
      markInvalid: (param, message) => this.#markInvalid(param, message),
      createErrorMessage: ({ param }) => (param === 'query' ? createInvalidSearchMessage() : undefined),
      onTerm: term => this.#updateFilters({ query: addTerm(this.#settings['query'] ?? '', term), tab: '' }),
      createRetentionNote: result => this.#createRetentionNote(result),
    };
    return {
      ...(this.#canCall('logs.patterns') ? { patterns: createPatternsTab(options) } : {}),
      ...(this.#canCall('logs.compare')
        ? { compare: createCompareTab(options, this.#context.updateSettings) }
        : {}),
    };
  }

  #markInvalid(param: string | undefined, message: string): void {
    this.#kind.setInvalid(param === 'kind');
    this.#searchBox.showError(param === 'query' ? message : '');
  }

  close(): void {
    this.#panel.close();
    for (const tab of Object.values(this.#tabs)) tab.close();
    this.#histogram.close();
  }

  get #settings(): search.Settings {
    return this.#state.settings;
  }

  get #kindName(): string {
    return this.#settings['kind'] ?? '';
  }

  get #isRecordPage(): boolean {
    return (this.#settings['record'] ?? '') !== '' && this.#canCall('logs.record');
  }

  get #columns(): readonly LogColumn[] {
    return chooseColumns(this.#kindName, this.#settings['columns'] ?? '');
  }

  get #fields(): readonly string[] {
    return listFields(findKind(this.#kindName));
  }

  #listPaths(): readonly string[] {
    return listPaths(this.#card.page.rows, record => readKind(record).fields);
  }

  #canCall(endpoint: string): boolean {
    return findEndpoint(this.#catalog, endpoint) !== undefined;
  }

  #updateFilters(settings: search.Settings): void {
    this.#context.updateSettings({ ...search.FIRST_PAGE, ...settings });
  }

  #createPanel(): QueryPanel {
    return new QueryPanel({
      content: this.#card.element,
      render: result => this.#render(result),
      markInvalid: (param, message) => this.#markInvalid(param, message),
      createErrorMessage: error => {
        if (error.param === 'cursor')
          return createInvalidPageMessage(error, {
            label: 'Newest',
            run: () => this.#context.updateSettings(search.FIRST_PAGE),
          });
        return error.param === 'query' ? createInvalidSearchMessage() : undefined;
      },
      autoRefreshLabel: 'Live tail',
      context: this.#context,
    });
  }

  #createSearchQuery(): Query {
    const isLive = search.isNewestPage(this.#settings) && isOpenEnded(this.#settings);
    return {
      endpoint: 'logs.search',
      parameters: request => this.#prepareRequest(request),
      windowSeconds: undefined,
      refreshSeconds: isLive ? TAIL_SECONDS : undefined,
      emptyState: {
        title: `No records of project ${this.#state.project} ${describeRange(this.#settings)}`,
        hints: [],
        log: 'log',
        windowSeconds: undefined,
      },
      swapRange: () => {
        const { start = '', end = '' } = this.#settings;
        this.#updateFilters({ start: end, end: start });
      },
      describeEmpty: (result, signal) => this.#describeEmpty(result, signal),
    };
  }

  #toPageParameters(bounds: Bounds): Record<string, string> {
    return { ...search.toFilters(this.#state), ...bounds, cursor: this.#settings['cursor'] ?? '' };
  }

  /** Returns the parameters of the next request, and stores in fields what kind of request it is and its bounds. */
  #prepareRequest({ isAutoRefresh, isManualRefresh }: QueryRequest): Record<string, string> {
    const bounds = search.toPageBounds(this.#settings);
    const parameters = this.#toPageParameters(bounds);
    this.#isManualRefresh = isManualRefresh;
    const isPageDue = Date.now() - this.#pageRequestedAt > PAGE_SECONDS * 1000 && !this.#card.isInUse;
    this.#isTailRequest = isAutoRefresh && this.#ranAt !== undefined && !isPageDue;
    if (!this.#isTailRequest || this.#ranAt === undefined) {
      this.#requestedBounds = bounds;
      this.#pageRequestedAt = Date.now();
      return parameters;
    }
    const tailStart = findTailStart(this.#card.page.rows, this.#ranAt);
    // If the range has no start, Date.parse returns NaN, and the comparison is false.
    const startsBeforeRange = tailStart < Date.parse(bounds.iso_timestamp_start) * 1000;
    return startsBeforeRange ? parameters : { ...parameters, iso_timestamp_start: microsToIso(tailStart) };
  }

  #createRecordQuery(): Query {
    return {
      endpoint: 'logs.record',
      parameters: () => this.#toRecordParameters(),
      windowSeconds: undefined,
      refreshSeconds: undefined,
      emptyState: { title: 'This record does not exist', hints: [], log: 'log', windowSeconds: undefined },
      describeEmpty: async () =>
        h(
          'div',
          { class: 'message', role: 'status' },
          h('h2', {}, 'This record does not exist'),
          h('p', {}, 'It may be older than the retention of the tier, or it was erased.'),
          this.#createBackButton(),
        ),
    };
  }

  #toRecordParameters(): Record<string, string> {
    const { project, settings } = this.#state;
    const { record = '', at = '', tier = '' } = settings;
    return { project, kind: this.#kindName, id: record, timestamp: at, project_tier: tier };
  }

  #describeEmpty(result: QueryResult, signal: AbortSignal): Promise<HTMLElement> {
    this.#ranAt = result.ranAt;
    this.#histogram.hide();
    this.#facets?.show(this.#state, this.#fields, this.#isManualRefresh);
    const options = {
      state: this.#state,
      context: this.#context,
      retentionNote: this.#createRetentionNote(result),
      updateFilters: (settings: search.Settings) => this.#updateFilters(settings),
      continueSearch: (nextCursor: string) => this.#goOlder({ rows: [], nextCursor }, this.#requestedBounds),
    };
    return describeEmptySearch(options, result, signal);
  }

  #render(result: QueryResult): void {
    if (this.#isRecordPage) {
      const text = 'One record, and the records before and after it of the same project and log.';
      this.#card.showSurroundings(
        result,
        h('div', { class: 'logs-note' }, h('p', {}, text), this.#createBackButton()),
      );
      return;
    }
    this.#ranAt = result.ranAt;
    if (this.#isTailRequest && this.#card.page.rows.length > 0) this.#card.showNewer(result);
    else {
      this.#shownBounds = this.#requestedBounds;
      this.#card.showPage(result, {
        offset: search.readOffset(this.#settings),
        isNewest: search.isNewestPage(this.#settings),
        retentionNote: this.#createRetentionNote(result),
        canGoNewer: this.#returnPages.has(this.#settings['cursor'] ?? ''),
      });
    }
    const forceRefresh = this.#isManualRefresh;
    if (!forceRefresh && this.#card.isInUse) return;
    void this.#histogram.load(this.#state, { forceRefresh });
    this.#facets?.show(this.#state, this.#fields, forceRefresh);
  }

  #createRetentionNote(result: QueryResult): HTMLElement | undefined {
    return createRetentionNote(result, this.#endpoint, this.#settings, this.#context);
  }

  /** Shows the records of a bar of the histogram. */
  #openBar(bucket: TimeRange, category: string | undefined): void {
    const { query = '' } = this.#settings;
    const ofCategory =
      category === undefined ? query : addTerm(query, toCategoryTerm(this.#kindName, category));
    this.#updateFilters({ ...zoomTo(bucket), query: ofCategory });
  }

  #startList(): void {
    this.#ranAt = undefined;
    this.#card.startList({
      columns: this.#columns,
      actions: {
        addTerm: term => this.#updateFilters({ query: addTerm(this.#settings['query'] ?? '', term) }),
        searchId: (id, record) =>
          this.#updateFilters({
            ...search.toRangeAround(record),
            kind: ALL_KINDS,
            query: formatTerm({ field: undefined, value: toPhrase(id), isExcluded: false }),
          }),
        page: this.#canCall('logs.record') ? this.#createRecordPage() : undefined,
      },
    });
  }

  #createRecordPage(): RecordPage {
    const toParameters = (record: Row) => ({
      ...{ project: this.#state.project, kind: ALL_KINDS, id: String(record['id']) },
      ...{ timestamp: String(record['timestamp']), project_tier: this.#settings['tier'] ?? '' },
    });
    return {
      toLink: record => this.#toLink(record),
      toCurl: record => toCurl('logs.record', { ...toParameters(record), neighbours: '0' }),
      open: record => this.#context.updateSettings(search.toRecordSettings(record)),
      async loadSurroundings(record) {
        const { rows } = await runQuery('logs.record', toParameters(record));
        const list = new LogList();
        list.setOptions({ columns: findKind(ALL_KINDS).columns, actions: undefined });
        list.render(rows);
        list.mark(record);
        return list.element;
      },
    };
  }

  #createCopyButton(): HTMLElement {
    return createCopyButton('Copy as curl', () =>
      this.#isRecordPage
        ? toCurl('logs.record', this.#toRecordParameters())
        : toCurl('logs.search', this.#toPageParameters(search.toPageBounds(this.#settings))),
    );
  }

  #createDownloadButton(): HTMLElement {
    return createDownloadButton('logs.search', () => ({
      parameters: search.toFilters(this.#state),
      columns: this.#columns,
      fileName: `${this.#kindName}-${this.#state.project}.csv`.replace(/[^\w.-]+/g, '_'),
    }));
  }

  #createBackButton(): HTMLElement {
    const button = h('button', { type: 'button', class: 'button small' }, 'Back to the search');
    button.addEventListener('click', () => this.#context.updateSettings({ record: '', at: '' }));
    return button;
  }

  #toLink(record: Row): string {
    return new URL(this.#context.toLink(search.toRecordSettings(record)), location.href).href;
  }

  #goOlder(page: Page, bounds: Bounds): void {
    if (page.nextCursor === undefined) return;
    this.#returnPages.set(page.nextCursor, search.toReturnPage(this.#settings, page, bounds));
    this.#context.updateSettings(search.toOlderPage(this.#settings, page, bounds));
    this.#panel.element.scrollIntoView({ block: 'start' });
  }
}

function createInvalidSearchMessage(): HTMLElement {
  return h(
    'div',
    { class: 'message' },
    h('h2', {}, 'Invalid search'),
    h('p', {}, 'The search box shows what is wrong.'),
  );
}
