// The logs view of a server with the explore pack: search in all log kinds, with a histogram, pages, a live tail, and links to
// single records.
import { type Choices, type Endpoint, findEndpoint, readChoices } from '../api/catalog.ts';
import type { QueryResult, Row } from '../api/client.ts';
import { createZoomBar } from '../chart/zoom.ts';
import { createCopyButton, createSelect } from '../components/controls.ts';
import { createInvalidPageMessage } from '../components/messages.ts';
import { type Query, QueryPanel, type QueryRequest } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import { microsToIso } from '../format.ts';
import { toCurl } from '../logs/curl.ts';
import { createDownloadButton } from '../logs/download.ts';
import { describeEmptySearch } from '../logs/empty-search.ts';
import { HistogramLoader } from '../logs/histogram-loader.ts';
import { findKind, listFields } from '../logs/kinds.ts';
import { findTailStart, type Page } from '../logs/live-tail.ts';
import { createRangeControls } from '../logs/range-controls.ts';
import { ResultCard } from '../logs/result-card.ts';
import { createSearchBox } from '../logs/search-box.ts';
import { addTerm } from '../logs/search-expression.ts';
import * as search from '../logs/search-state.ts';
import {
  ALL,
  type Bounds,
  describeRange,
  findRetentionDays,
  isClippedByRetention,
  isOpenEnded,
} from '../logs/time-range.ts';
import type { Shortcut } from '../shortcuts.ts';
import { toSearch, type UrlState } from '../url-state.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

/** The live tail requests new records this often. */
const TAIL_SECONDS = 3;
/** The live tail loads the whole page again after this time, for records that arrived late. */
const PAGE_SECONDS = 30;

export function defineLogSearchView(endpoint: Endpoint, catalog: readonly Endpoint[]): ViewDefinition {
  const tiers = readChoices(endpoint, 'project_tier');
  const kinds = readChoices(endpoint, 'kind');
  return {
    name: 'logs',
    title: 'Logs',
    defaults: { kind: kinds.default.name, range: ALL, tier: tiers.default.name },
    firstPage: search.FIRST_PAGE,
    open: context => new LogSearchView({ tiers, kinds, catalog }, context),
  };
}

interface LogSearchOptions {
  readonly tiers: Choices;
  readonly kinds: Choices;
  readonly catalog: readonly Endpoint[];
}

class LogSearchView implements View {
  readonly element: HTMLElement;
  readonly shortcuts: readonly Shortcut[];
  readonly #catalog: readonly Endpoint[];
  readonly #tiers: Choices;
  readonly #context: ViewContext;
  readonly #searchBox = createSearchBox(
    query => this.#updateFilters({ query }),
    () => this.show(this.#state),
  );
  readonly #kind: ReturnType<typeof createSelect>;
  readonly #range: ReturnType<typeof createRangeControls>;
  readonly #zoomBar = createZoomBar(() => this.#updateFilters(search.zoomOut(this.#settings)));
  readonly #histogram: HistogramLoader;
  readonly #card: ResultCard;
  readonly #panel: QueryPanel;
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

  constructor({ kinds, tiers, catalog }: LogSearchOptions, context: ViewContext) {
    this.#catalog = catalog;
    this.#tiers = tiers;
    this.#context = context;
    this.#kind = createSelect(
      'Log',
      kinds.all.map(({ name }) => ({ value: name, label: findKind(name).title })),
      {},
      kind => this.#updateFilters({ kind }),
    );
    this.#range = createRangeControls(tiers, settings =>
      this.#updateFilters({ zoomed_from: '', ...settings }),
    );
    this.#histogram = new HistogramLoader({
      endpoint: this.#canCall('logs.histogram') ? 'logs.histogram' : undefined,
      toRetentionDays: settings => findRetentionDays(tiers, settings),
      onZoom: range => this.#updateFilters(search.zoomIn(this.#settings, range)),
      onTotal: total => this.#card.setTotal(total),
    });
    this.#card = new ResultCard({
      onOlder: () => this.#goOlder(this.#card.page, this.#shownBounds),
      onNewer: () => context.updateSettings(this.#returnPages.get(this.#settings['cursor'] ?? '') ?? {}),
      onNewest: () => context.updateSettings(search.FIRST_PAGE),
      onReload: () => this.#panel.run(this.#createSearchQuery()),
      copyButton: this.#createCopyButton(),
      downloadButton: this.#createDownloadButton(),
    });
    this.#panel = this.#createPanel();
    this.shortcuts = [
      { key: '/', description: 'Go to the search box', run: () => this.#searchBox.focus() },
      ...this.#panel.shortcuts,
      this.#zoomBar.shortcut,
    ];
    this.element = h(
      'div',
      { class: 'view' },
      h('div', { class: 'controls' }, this.#kind.element, ...this.#range.elements),
      this.#searchBox.element,
      this.#zoomBar.element,
      this.#histogram.element,
      this.#panel.element,
    );
  }

  show(state: UrlState): void {
    const { settings, project } = state;
    const isOtherList = search.toListKey(state) !== search.toListKey(this.#state);
    this.#state = state;
    this.#kind.setValue(settings['kind'] ?? '');
    this.#range.setValues(settings);
    this.#zoomBar.show(search.readZoom(settings));
    this.#searchBox.setValue(settings['query'] ?? '');
    this.#searchBox.setSource({
      fields: listFields(findKind(this.#kindName)),
      parameters: project !== '' && this.#canCall('logs.fields') ? search.toFilters(state) : undefined,
    });
    if (isOtherList) this.#startList();
    if (project === '') {
      this.#histogram.hide();
      this.#panel.promptForProject();
    } else if (this.#isRecordPage) {
      this.#histogram.hide();
      this.#panel.run(this.#createRecordQuery());
    } else {
      this.#panel.run(this.#createSearchQuery());
      void this.#histogram.load(state);
    }
  }

  close(): void {
    this.#panel.close();
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
      markInvalid: (param, message) => {
        this.#range.markInvalid(param);
        this.#kind.setInvalid(param === 'kind');
        this.#searchBox.showError(param === 'query' ? message : '');
      },
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
    const options = {
      state: this.#state,
      kindTitle: findKind(this.#kindName).title,
      isClipped: isClippedByRetention(result.clipped, this.#settings, this.#tiers),
      canCount: this.#canCall('logs.histogram'),
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
        isClipped: isClippedByRetention(result.clipped, this.#settings, this.#tiers),
        canGoNewer: this.#returnPages.has(this.#settings['cursor'] ?? ''),
      });
    }
    const forceRefresh = this.#isManualRefresh;
    if (forceRefresh || !this.#card.isInUse) void this.#histogram.load(this.#state, { forceRefresh });
  }

  #startList(): void {
    const kind = findKind(this.#kindName);
    this.#ranAt = undefined;
    this.#card.startList({
      columns: kind.columns,
      actions: {
        kind,
        addTerm: term => this.#updateFilters({ query: addTerm(this.#settings['query'] ?? '', term) }),
        toLink: this.#canCall('logs.record') ? record => this.#toLink(record) : undefined,
        showSurroundings: record => this.#context.updateSettings(search.toRecordSettings(record)),
      },
    });
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
      columns: findKind(this.#kindName).columns,
      fileName: `${this.#kindName}-${this.#state.project}.csv`.replace(/[^\w.-]+/g, '_'),
    }));
  }

  #createBackButton(): HTMLElement {
    const button = h('button', { type: 'button', class: 'button small' }, 'Back to the search');
    button.addEventListener('click', () => this.#context.updateSettings({ record: '', at: '' }));
    return button;
  }

  #toLink(record: Row): string {
    const settings = { ...this.#settings, ...search.toRecordSettings(record) };
    return new URL(toSearch({ ...this.#state, settings }), location.href).href;
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
