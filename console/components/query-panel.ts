// Runs a query and shows its result, a message or an error. Refreshes the result while the tab is visible.
import {
  ApiError,
  ageSeconds,
  explainQuery,
  type QueryResult,
  type RequestOptions,
  type Row,
  runQuery,
} from '../api/client.ts';
import { h, replaceChildren } from '../dom.ts';
import { findExistingRecords } from '../existing-records.ts';
import type { Shortcut } from '../shortcuts.ts';
import type { ViewContext } from '../views/view.ts';
import { createFreshnessBar, type FreshnessBar } from './freshness-bar.ts';
import {
  createActionButton,
  createEmptyMessage,
  createErrorMessage,
  createLoadingMessage,
  createReversedRangeMessage,
  type EmptyReason,
  type EmptyState,
  findReversedRange,
} from './messages.ts';
import { RefreshTimer } from './refresh-timer.ts';
import { SlowNotice } from './slow-notice.ts';

/** Neither is true for the first request of a query. */
export interface QueryRequest {
  readonly isAutoRefresh: boolean;
  /** The user asked for a refresh. */
  readonly isManualRefresh: boolean;
}

export interface Query {
  readonly endpoint: string;
  /** Called for each request, because a time range can be relative to now. */
  parameters(request: QueryRequest): Readonly<Record<string, string>>;
  /** A result that is older than a tenth of the window is refreshed immediately; undefined: a result has no maximum age. */
  readonly windowSeconds: number | undefined;
  /** Undefined: the result does not change, so there is no auto-refresh. */
  readonly refreshSeconds: number | undefined;
  readonly emptyState: EmptyState;
  /** A query with the key of the current one is not run again. Its result is rendered again. */
  readonly key?: string;
  /** Keeps only these rows, for an endpoint that cannot be asked for the time range of the page. */
  keep?(row: Row, ranAt: number): boolean;
  /** Exchanges the start and the end of a time range that the user entered. */
  readonly swapRange?: () => void;
  /** Explains an empty result; undefined: the endpoint's explanation is shown. */
  describeEmpty?(result: QueryResult, signal: AbortSignal): Promise<HTMLElement | undefined>;
  /** Runs further queries after a result that has rows was rendered. */
  loadMore?(result: QueryResult, signal: AbortSignal): Promise<void>;
}

export interface QueryPanelOptions {
  readonly content: HTMLElement;
  render(result: QueryResult): void;
  /** Marks the field of the parameter that the API rejected; undefined: no parameter is invalid. */
  markInvalid(param: string | undefined, message: string): void;
  /** Replaces the message about an error; undefined: the usual message. */
  createErrorMessage?(error: ApiError): HTMLElement | undefined;
  readonly autoRefreshLabel?: string;
  readonly context: Pick<
    ViewContext,
    'onUnauthorized' | 'markInvalid' | 'createProjectPrompt' | 'catalog' | 'linkToLogs' | 'linkToProject'
  >;
}

/** The maximum age of a cached result, as a fraction of the window. */
const MAX_AGE_RATIO = 0.1;
const ERROR_RETRY_SECONDS = 10;
/** The explanation of an empty result is loaded again after this time, because the records that it counts change. */
const EXPLANATION_SECONDS = 30;
const UNEXPLAINED: EmptyReason = { explanation: undefined, existing: undefined };

export class QueryPanel {
  readonly element: HTMLElement;
  readonly shortcuts: readonly Shortcut[] = [
    {
      key: 'r',
      description: 'Refresh the result, without the cache',
      run: () => void this.#load({ forceRefresh: true }),
    },
  ];
  readonly #options: QueryPanelOptions;
  readonly #freshnessBar: FreshnessBar;
  readonly #message = h('div', { class: 'query-panel-message' });
  readonly #slow = new SlowNotice(() => this.#cancel());
  readonly #timer = new RefreshTimer(() => void this.#load({}));
  #query: Query | undefined;
  #request: AbortController | undefined;
  /** The parameters of the last request. */
  #parameters: Readonly<Record<string, string>> = {};
  /** The result on the page; undefined while the page shows a message instead. */
  #shown: { readonly query: Query; readonly result: QueryResult } | undefined;
  /** Why the result of the current query is empty; undefined: unknown so far. */
  #explanation: EmptyReason | HTMLElement | undefined;
  /** The request that the explanation is about, whether a page follows its result, and when it was explained. */
  #explained: { readonly parameters: string; readonly hasNextPage: boolean; readonly at: number } | undefined;

  constructor(options: QueryPanelOptions) {
    this.#options = options;
    this.#freshnessBar = createFreshnessBar({
      onRefresh: () => void this.#load({ forceRefresh: true }),
      onAutoRefreshChange: () => this.#scheduleRefresh(),
      autoRefreshLabel: options.autoRefreshLabel ?? 'Auto-refresh',
    });
    options.content.hidden = true;
    this.element = h(
      'section',
      { class: 'query-panel' },
      this.#freshnessBar.element,
      this.#slow.element,
      this.#message,
      options.content,
    );
  }

  /** The previous content stays visible, dimmed, until the new result arrives. */
  run(query: Query): void {
    const isSame = (other: Query | undefined) => query.key !== undefined && query.key === other?.key;
    if (this.#shown !== undefined && isSame(this.#shown.query) && isSame(this.#query)) {
      this.#options.render(this.#shown.result);
      return;
    }
    this.#query = query;
    this.#freshnessBar.element.hidden = false;
    this.#explanation = undefined;
    this.#freshnessBar.setAutoRefreshAvailable(query.refreshSeconds !== undefined);
    if (this.#shown === undefined) this.#showMessage(createLoadingMessage());
    void this.#load({ isNewQuery: true });
  }

  /** Stops until the next `run`, because the page shows something else. */
  stop(): void {
    this.#query = undefined;
    this.#stop();
  }

  /** Hides the result, which is about something else than the next query. */
  clear(): void {
    this.#shown = undefined;
    this.#options.content.hidden = true;
    this.#freshnessBar.clear();
  }

  promptForProject(): void {
    this.stop();
    this.clear();
    this.#freshnessBar.element.hidden = true;
    this.#showMessage(this.#options.context.createProjectPrompt());
  }

  close(): void {
    this.#stop();
    this.#timer.close();
    this.#freshnessBar.close();
  }

  async #load({ forceRefresh = false, isNewQuery = false }): Promise<void> {
    const query = this.#query;
    if (query === undefined) return;
    this.#stop();
    const request = new AbortController();
    let awaitsFirstResult = isNewQuery;
    this.#request = request;
    if (this.#shown !== undefined) this.#message.hidden = true; // of a query that was cancelled
    const isAutoRefresh = !forceRefresh && !isNewQuery;
    // Dims the content. An auto-refresh does not, because a page that dims every few seconds flickers.
    if (!isAutoRefresh) {
      this.element.setAttribute('aria-busy', 'true');
      this.#slow.start();
    }
    try {
      const { signal } = request;
      const load = async (options: RequestOptions): Promise<QueryResult> => {
        this.#parameters = query.parameters({ isAutoRefresh, isManualRefresh: forceRefresh });
        const loaded = await runQuery(query.endpoint, this.#parameters, { ...options, signal });
        const { keep } = query;
        return keep ? { ...loaded, rows: loaded.rows.filter(row => keep(row, loaded.ranAt)) } : loaded;
      };
      const result = await load({ forceRefresh });
      if (forceRefresh || this.#isExplanationOutdated(result)) this.#explanation = undefined;
      this.#showResult(query, result);
      awaitsFirstResult = false;
      let newest = result;
      if (isStale(query, result)) {
        newest = await load({ forceRefresh: true });
        this.#showResult(query, newest);
      }
      if (newest.rows.length === 0) await this.#explain(query, newest, signal);
      this.element.removeAttribute('aria-busy');
      if (newest.rows.length > 0) await query.loadMore?.(newest, signal);
      this.#scheduleRefresh();
    } catch (error) {
      if (request.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      this.#showError(error, awaitsFirstResult);
    } finally {
      if (this.#request === request) this.#showIdle();
    }
  }

  /** The previous result stays on the page. */
  #cancel(): void {
    this.#stop();
    const hasResult = this.#shown !== undefined;
    const again = { label: 'Run again', run: () => void this.#load({ isNewQuery: true }) };
    const message = h(
      'div',
      { class: 'message', role: 'status' },
      h('h2', {}, 'Cancelled'),
      hasResult ? h('p', {}, 'What is below is not complete, or belongs to the query before.') : undefined,
      createActionButton(again),
    );
    replaceChildren(this.#message, message);
    this.#message.hidden = false;
    this.#options.content.hidden = !hasResult;
  }

  #showIdle(): void {
    this.element.removeAttribute('aria-busy');
    this.#slow.stop();
  }

  #showResult(query: Query, result: QueryResult): void {
    this.#markInvalid(undefined);
    this.#freshnessBar.showResult(result);
    if (result.rows.length === 0) {
      this.#showEmpty(query, result);
      return;
    }
    this.#explanation = undefined;
    this.#message.hidden = true;
    this.#options.content.hidden = false;
    this.#shown = { query, result };
    this.#options.render(result);
  }

  #showEmpty(query: Query, result: QueryResult): void {
    const reversed = findReversedRange(this.#parameters);
    if (reversed !== undefined) {
      this.#showMessage(createReversedRangeMessage(reversed, query.swapRange));
      return;
    }
    const explanation = this.#explanation ?? UNEXPLAINED;
    this.#showMessage(
      explanation instanceof HTMLElement
        ? explanation
        : createEmptyMessage(query.emptyState, result, explanation, this.#options.context),
    );
  }

  /** Adds the explanation to the message. An auto-refresh reuses it for a while: it is slow, because it counts all records. */
  async #explain(query: Query, result: QueryResult, signal: AbortSignal): Promise<void> {
    const isRecent = Date.now() - (this.#explained?.at ?? 0) < EXPLANATION_SECONDS * 1000;
    if (this.#explanation !== undefined && isRecent) return;
    if (findReversedRange(this.#parameters) !== undefined) return;
    this.#explained = {
      parameters: JSON.stringify(this.#parameters),
      hasNextPage: result.nextCursor !== undefined,
      at: Date.now(),
    };
    try {
      this.#explanation =
        (await query.describeEmpty?.(result, signal)) ?? (await this.#findReason(query, signal));
      this.#showEmpty(query, result);
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError)) throw error;
      this.#explanation ??= UNEXPLAINED;
    }
  }

  /** Each of the two parts is undefined if its request fails: not every endpoint has an explanation. */
  async #findReason({ endpoint, emptyState: { source } }: Query, signal: AbortSignal): Promise<EmptyReason> {
    const orUndefined = (error: unknown) => {
      if (signal.aborted || !(error instanceof ApiError)) throw error;
      return undefined;
    };
    const { catalog } = this.#options.context;
    const [explanation, existing] = await Promise.all([
      explainQuery(endpoint, this.#parameters, { signal }).catch(orUndefined),
      source && findExistingRecords(catalog, source.project, signal).catch(orUndefined),
    ]);
    return { explanation, existing };
  }

  /** Whether a page follows is part of an explanation. An auto-refresh of the log search requests only the newest records. */
  #isExplanationOutdated({ nextCursor }: QueryResult): boolean {
    return (
      this.#explained?.parameters === JSON.stringify(this.#parameters) &&
      this.#explained.hasNextPage !== (nextCursor !== undefined)
    );
  }

  /** A failed refresh keeps the previous result on the page. */
  #showError(error: ApiError, awaitsFirstResult: boolean): void {
    if (error.code === 'unauthorized') {
      this.#options.context.onUnauthorized(error);
      return;
    }
    this.#markInvalid(error.param, error.message);
    const shouldRetry = error.retryAfterSeconds !== undefined || !awaitsFirstResult;
    if (this.#shown !== undefined && !awaitsFirstResult) this.#freshnessBar.showError(error.message);
    else {
      this.#freshnessBar.clear();
      this.#showMessage(this.#options.createErrorMessage?.(error) ?? createErrorMessage(error, shouldRetry));
    }
    this.#timer.schedule(
      shouldRetry ? Math.max(error.retryAfterSeconds ?? ERROR_RETRY_SECONDS, 1) : undefined,
    );
  }

  #markInvalid(param: string | undefined, message = ''): void {
    this.#options.markInvalid(param, message);
    this.#options.context.markInvalid(param);
  }

  #showMessage(message: HTMLElement): void {
    if (this.#message.firstChild !== message) replaceChildren(this.#message, message); // keeps the focus
    this.#message.hidden = false;
    this.#options.content.hidden = true;
    this.#shown = undefined;
  }

  #scheduleRefresh(): void {
    this.#timer.schedule(this.#freshnessBar.isAutoRefreshOn ? this.#query?.refreshSeconds : undefined);
  }

  #stop(): void {
    this.#request?.abort();
    this.#timer.schedule(undefined);
    this.#showIdle();
  }
}

function isStale({ windowSeconds }: Query, result: QueryResult): boolean {
  return windowSeconds !== undefined && ageSeconds(result) > windowSeconds * MAX_AGE_RATIO;
}
