// Runs a query and shows its result, a message or an error. Refreshes the result while the tab is visible.
import {
  ApiError,
  ageSeconds,
  type Explanation,
  explainQuery,
  type QueryResult,
  type RequestOptions,
  runQuery,
} from '../api/client.ts';
import { h, replaceChildren } from '../dom.ts';
import type { Shortcut } from '../shortcuts.ts';
import type { ViewContext } from '../views/view.ts';
import { createFreshnessBar, type FreshnessBar } from './freshness-bar.ts';
import {
  createEmptyMessage,
  createErrorMessage,
  createLoadingMessage,
  createReversedRangeMessage,
  type EmptyState,
  findReversedRange,
} from './messages.ts';

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
  /** Exchanges the start and the end of a time range that the user entered. */
  readonly swapRange?: () => void;
  /** Explains an empty result; undefined: the endpoint's explanation is shown. */
  describeEmpty?(result: QueryResult, signal: AbortSignal): Promise<HTMLElement | undefined>;
}

export interface QueryPanelOptions {
  readonly content: HTMLElement;
  render(result: QueryResult): void;
  /** Marks the field of the parameter that the API rejected; undefined: no parameter is invalid. */
  markInvalid(param: string | undefined, message: string): void;
  /** Replaces the message about an error; undefined: the usual message. */
  createErrorMessage?(error: ApiError): HTMLElement | undefined;
  readonly autoRefreshLabel?: string;
  readonly context: Pick<ViewContext, 'onUnauthorized' | 'setProjectInvalid' | 'createProjectPrompt'>;
}

/** The maximum age of a cached result, as a fraction of the window. */
const MAX_AGE_RATIO = 0.1;
const ERROR_RETRY_SECONDS = 10;

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
  readonly #timer = new RefreshTimer(() => void this.#load({}));
  #query: Query | undefined;
  #request: AbortController | undefined;
  /** The parameters of the last request. */
  #parameters: Readonly<Record<string, string>> = {};
  /** The result on the page; undefined while the page shows a message instead. */
  #shown: { readonly query: Query; readonly result: QueryResult } | undefined;
  /** Why the result of the current query is empty. 'none': no explanation exists, or its request failed. undefined: unknown. */
  #explanation: Explanation | HTMLElement | 'none' | undefined;

  /** The request that the explanation is about, and whether a page follows its result. */
  #explained: { readonly parameters: string; readonly hasNextPage: boolean } | undefined;

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

  promptForProject(): void {
    this.#query = undefined;
    this.#stop();
    this.#freshnessBar.clear();
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
    const isAutoRefresh = !forceRefresh && !isNewQuery;
    // Dims the content. An auto-refresh does not, because a page that dims every few seconds flickers.
    if (!isAutoRefresh) this.element.setAttribute('aria-busy', 'true');
    try {
      const { signal } = request;
      const load = (options: RequestOptions) => {
        this.#parameters = query.parameters({ isAutoRefresh, isManualRefresh: forceRefresh });
        return runQuery(query.endpoint, this.#parameters, { ...options, signal });
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
      this.#scheduleRefresh();
    } catch (error) {
      if (request.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      this.#showError(error, awaitsFirstResult);
    } finally {
      if (this.#request === request) this.element.removeAttribute('aria-busy');
    }
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
    const explanation = this.#explanation === 'none' ? undefined : this.#explanation;
    this.#showMessage(
      explanation instanceof HTMLElement
        ? explanation
        : createEmptyMessage(query.emptyState, result, explanation),
    );
  }

  /** Adds the explanation to the message. An auto-refresh reuses it: it is slow, because it counts all records of the project. */
  async #explain(query: Query, result: QueryResult, signal: AbortSignal): Promise<void> {
    if (this.#explanation !== undefined || findReversedRange(this.#parameters) !== undefined) return;
    try {
      this.#explanation =
        (await query.describeEmpty?.(result, signal)) ??
        (await explainQuery(query.endpoint, this.#parameters, { signal }));
      this.#explained = {
        parameters: JSON.stringify(this.#parameters),
        hasNextPage: result.nextCursor !== undefined,
      };
      this.#showEmpty(query, result);
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError)) throw error;
      this.#explanation = 'none';
    }
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
    this.#options.context.setProjectInvalid(param === 'project');
  }

  #showMessage(message: HTMLElement): void {
    replaceChildren(this.#message, message);
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
    this.element.removeAttribute('aria-busy');
  }
}

function isStale({ windowSeconds }: Query, result: QueryResult): boolean {
  return windowSeconds !== undefined && ageSeconds(result) > windowSeconds * MAX_AGE_RATIO;
}

/** A one-shot timer that does not fire while the tab is hidden. A timer that is overdue fires when the tab is shown. */
class RefreshTimer {
  readonly #run: () => void;
  /** Unix milliseconds; undefined if no run is scheduled. */
  #dueAt: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(run: () => void) {
    this.#run = run;
    document.addEventListener('visibilitychange', this.#update);
  }

  /** Replaces the scheduled run; undefined cancels it. */
  schedule(seconds: number | undefined): void {
    this.#dueAt = seconds === undefined ? undefined : Date.now() + seconds * 1000;
    this.#update();
  }

  close(): void {
    this.schedule(undefined);
    document.removeEventListener('visibilitychange', this.#update);
  }

  readonly #update = (): void => {
    clearTimeout(this.#timer);
    if (this.#dueAt === undefined || document.hidden) return;
    this.#timer = setTimeout(
      () => {
        this.#dueAt = undefined;
        this.#run();
      },
      Math.max(0, this.#dueAt - Date.now()),
    );
  };
}
