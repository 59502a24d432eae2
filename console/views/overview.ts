// The start page of a project: what is broken, since when and where. It compares the time range with the period of the same length
// before it, and every number is a link to the records behind it.
import { type Endpoint, findEndpoint, findLongestTier } from '../api/catalog.ts';
import { ApiError, type QueryResult, type RequestOptions, type Row, runQuery } from '../api/client.ts';
import { createTable } from '../components/data-table.ts';
import { createRetentionNote } from '../components/messages.ts';
import { type Query, QueryPanel, type QueryRequest } from '../components/query-panel.ts';
import { h, replaceChildren } from '../dom.ts';
import { createSendHelp, describeExisting, findExistingRecords, hasRecords } from '../existing-records.ts';
import { formatCount, formatElapsed, formatMilliseconds, formatPercent } from '../format.ts';
import { HistogramLoader } from '../logs/histogram-loader.ts';
import { ALL_KINDS, findKind, toErrorQuery } from '../logs/kinds.ts';
import { createTrend, formatChange, toPatternPhrase } from '../logs/patterns.ts';
import { formatTerm } from '../logs/search-expression.ts';
import type { Shortcut } from '../shortcuts.ts';
import {
  type Bounds,
  describeRange,
  isOpenEnded,
  pickRange,
  type Span,
  toSpan,
  zoomTo,
} from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { FiringAlerts } from './firing-alerts.ts';
import { readNumber, readStart } from './function-stats.ts';
import { toFunctionQuery } from './functions.ts';
import { chooseInterval, isInRange } from './interval.ts';
import { SERVICE_AREAS } from './usage.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

export const OVERVIEW_ENDPOINTS = ['logs.search', 'logs.histogram', 'logs.top', 'logs.patterns'];

const REFRESH_SECONDS = 60;
const MAX_FUNCTIONS = 8;
const MAX_PATTERNS = 8;
/** The maximum number of rows of logs.top: with so many, there can be other values. */
const MAX_VALUES = 100;
/** A function that had so many invocations and has none any more has stopped. */
const MIN_INVOCATIONS = 5;
const DAY_MS = 86_400_000;
const BY_KIND = { kind: ALL_KINDS, field: 'kind' };

/** `endpoint` is logs.top. */
export function defineOverviewView(endpoint: Endpoint): ViewDefinition {
  return {
    name: 'overview',
    title: 'Overview',
    defaults: {},
    implied: { tier: findLongestTier(endpoint).name },
    open: context => new Overview(endpoint, context),
  };
}

/** A service area or a function, in the time range and in the period before. */
interface Subject {
  readonly name: string;
  /** The link of its number of requests. */
  link(text: string, errorsOnly: boolean): HTMLElement;
  readonly now: Counts;
  /** Undefined if it is unknown. */
  readonly before: Counts | undefined;
  readonly isFunction: boolean;
}

/** What is undefined is unknown. */
interface Times {
  /** In milliseconds. */
  readonly p95?: number | undefined;
  /** The share of invocations that took longer than the p95, now and in the period before. */
  readonly slow?: number | undefined;
  readonly slowBefore?: number | undefined;
}

interface Counts {
  readonly count: number;
  readonly errors: number;
}

/** The periods and the options of all queries of one load of the page. */
interface Load extends RequestOptions {
  readonly signal: AbortSignal;
  readonly now: Bounds;
  /** The period of the same length before the time range; undefined if that has no start, or if nothing is known about it. */
  readonly before: Bounds | undefined;
}

class Overview implements View {
  readonly element: HTMLElement;
  readonly shortcuts: readonly Shortcut[];
  readonly #endpoint: Endpoint;
  readonly #context: ViewContext;
  readonly #panel: QueryPanel;
  readonly #alerts: FiringAlerts;
  readonly #notes = h('div', { class: 'overview-notes' });
  readonly #tiles = h('div', { class: 'tiles' });
  readonly #errors: HistogramLoader;
  readonly #subjects = new Section('What got worse');
  readonly #kinds = new Section('Log kinds, and the age of their newest record');
  readonly #patterns = new Section('Error patterns');
  #state: UrlState = { view: '', project: '', settings: {} };
  /** The times of the current time range, by function; those of all functions have an empty name. */
  readonly #times = new Map<string, Times>();

  constructor(endpoint: Endpoint, context: ViewContext) {
    this.#endpoint = endpoint;
    this.#context = context;
    this.#alerts = new FiringAlerts(context);
    const openLogs = (kind: string) => context.logsOpenerFor(kind);
    this.#errors = new HistogramLoader({
      endpoint: 'logs.histogram',
      onZoom: range => context.updateSettings(zoomTo(range)),
      onOpenBucket: (bucket, kind = ALL_KINDS) => openLogs(kind)?.(bucket, toErrorQuery(kind)),
      title: total => `${formatCount(total)} ${total === 1 ? 'error' : 'errors'} of all log kinds`,
    });
    this.#panel = new QueryPanel({
      content: h(
        'div',
        { class: 'overview stack' },
        this.#notes,
        this.#tiles,
        this.#errors.element,
        h('div', { class: 'overview-columns' }, this.#subjects.element, this.#kinds.element),
        this.#patterns.element,
      ),
      render: () => {},
      markInvalid: () => {},
      context,
    });
    this.shortcuts = this.#panel.shortcuts;
    this.element = h('div', { class: 'view' }, this.#alerts.element, this.#panel.element);
  }

  show(state: UrlState): void {
    if (state.project !== this.#state.project) this.#clear();
    this.#times.clear();
    this.#state = state;
    if (state.project === '') this.#panel.promptForProject();
    else this.#panel.run(this.#createQuery());
  }

  close(): void {
    this.#panel.close();
    this.#alerts.close();
    this.#errors.close();
  }

  #clear(): void {
    this.#panel.clear();
    this.#alerts.clear();
    this.#errors.hide();
    for (const section of [this.#subjects, this.#kinds, this.#patterns]) section.clear();
  }

  #createQuery(): Query {
    const { project, settings } = this.#state;
    let span = toSpan(settings);
    let request: QueryRequest | undefined;
    return {
      endpoint: this.#endpoint.name,
      parameters: current => {
        request = current;
        span = toSpan(settings);
        void this.#alerts.load(this.#state);
        return this.#toParameters({ ...BY_KIND, ...toBoundsOf(span) });
      },
      windowSeconds: undefined,
      refreshSeconds: isOpenEnded(settings) ? REFRESH_SECONDS : undefined,
      emptyState: {
        title: `No records of project ${project} ${describeRange(settings)}`,
        hints: [],
        log: 'log',
        windowSeconds: undefined,
      },
      swapRange: () => {
        const { start = '', end = '' } = settings;
        this.#context.updateSettings({ start: end, end: start });
      },
      describeEmpty: (result, signal) => this.#describeEmpty(result, signal),
      loadMore: async (kinds, signal) => {
        const { isManualRefresh: forceRefresh = false, isAutoRefresh = false } = request ?? {};
        // An auto-refresh keeps the comparison until the new one is loaded, so that it does not flicker.
        if (!isAutoRefresh) this.#showTiles(kinds.rows, undefined);
        const before = toBefore(span);
        await this.#loadSections(kinds, { forceRefresh, signal, now: toBoundsOf(span), before });
      },
    };
  }

  /** What matters most comes first. */
  async #loadSections(kinds: QueryResult, load: Load): Promise<void> {
    const { settings } = this.#state;
    const retentionNote = createRetentionNote(kinds, this.#endpoint, settings, this.#context);
    replaceChildren(this.#notes, retentionNote);
    const errors = { ...settings, kind: ALL_KINDS, query: toErrorQuery(ALL_KINDS) };
    void this.#errors.load({ ...this.#state, settings: errors }, load);
    const before = await this.#queryBefore(BY_KIND, load);
    if (load.before !== undefined && before === undefined) {
      load = { ...load, before: undefined };
      replaceChildren(this.#notes, retentionNote, h('p', { class: 'note' }, UNKNOWN_BEFORE));
    }
    this.#showTiles(kinds.rows, before?.rows);
    let subjects: readonly Subject[] = [];
    await this.#subjects.load(load.signal, async () => {
      subjects = await this.#findSubjects(kinds.rows, before?.rows, load);
      this.#showSubjects(subjects);
    });
    await this.#kinds.load(load.signal, () => this.#showKinds(kinds, load));
    await this.#patterns.load(load.signal, () => this.#showPatterns(load));
    const functions = subjects.filter(({ isFunction }) => isFunction);
    if (functions.length === 0) return;
    const ofFunctions = (rows: readonly Row[]) =>
      sumCounts(rows.filter(({ value }) => value === 'function_edge'));
    const all = { name: '', now: ofFunctions(kinds.rows), before: before && ofFunctions(before.rows) };
    await Promise.all([all, ...functions].map(each => this.#loadTimes(each, load)));
    this.#showTiles(kinds.rows, before?.rows);
    this.#showSubjects(subjects);
  }

  /** No kind has records in the time range. */
  async #describeEmpty(result: QueryResult, signal: AbortSignal): Promise<HTMLElement> {
    const { project, settings } = this.#state;
    const source = { kind: ALL_KINDS, project };
    const existing = await findExistingRecords(this.#context.catalog, project, signal);
    const older = existing !== undefined && hasRecords(existing, source);
    return h(
      'div',
      { class: 'message', role: 'status' },
      h('h2', {}, `No records of project ${project} ${describeRange(settings)}`),
      createRetentionNote(result, this.#endpoint, settings, this.#context),
      ...(existing === undefined ? [] : describeExisting(existing, source, this.#context)),
      ...(older ? [] : createSendHelp(existing, source, !older)),
    );
  }

  /** The settings of links: the same time range. */
  #link(text: string, kind: string, query = ''): HTMLElement {
    return this.#context.linkToLogs(text, kind, { ...pickRange(this.#state.settings), query });
  }

  #toParameters(parameters: Record<string, string>): Record<string, string> {
    const { project, settings } = this.#state;
    return { project, project_tier: settings['tier'] ?? '', ...parameters };
  }

  #query(parameters: Record<string, string>, bounds: Bounds, load: Load, endpoint = 'logs.top') {
    return runQuery(endpoint, this.#toParameters({ ...parameters, ...bounds }), load);
  }

  /** Undefined if the period before is unknown: it starts before the retention, or its query fails. */
  async #queryBefore(parameters: Record<string, string>, load: Load): Promise<QueryResult | undefined> {
    if (load.before === undefined) return undefined;
    const result = await orUnknown(this.#query(parameters, load.before, load), load);
    return result?.clipped.includes('retention') ? undefined : result;
  }

  #showTiles(rows: readonly Row[], before: readonly Row[] | undefined): void {
    const times = this.#times.get('') ?? {};
    const edge = (list: readonly Row[] | undefined) =>
      sumCounts(list?.filter(row => row['value'] === 'edge'));
    const [requests, all] = [edge(rows), sumCounts(rows)];
    const [requestsBefore, allBefore] = [before && edge(before), before && sumCounts(before)];
    replaceChildren(
      this.#tiles,
      createTile(
        'Requests',
        this.#link(formatCount(requests.count), 'edge'),
        describeCount(requests.count, requestsBefore?.count),
      ),
      createTile(
        'Failed requests',
        this.#link(formatPercent(shareOf(requests)), 'edge', toErrorQuery('edge')),
        requestsBefore && `${formatPercent(shareOf(requestsBefore))} before`,
        requestsBefore !== undefined && shareOf(requests) > shareOf(requestsBefore) + 0.005,
      ),
      createTile(
        'Errors in all logs',
        this.#link(formatCount(all.errors), ALL_KINDS, toErrorQuery(ALL_KINDS)),
        describeCount(all.errors, allBefore?.errors),
        allBefore !== undefined && all.errors > 1.5 * allBefore.errors + 5,
      ),
      times.p95 === undefined
        ? undefined
        : createTile(
            'p95 of functions',
            this.#context.linkToView(
              formatMilliseconds(times.p95),
              'functions',
              pickRange(this.#state.settings),
            ),
            describeSlow(times),
            slowdownOf(times) > 0.05,
          ),
    );
  }

  async #findSubjects(
    rows: readonly Row[],
    rowsBefore: readonly Row[] = [],
    load: Load,
  ): Promise<readonly Subject[]> {
    const has = (kind: string) => [...rows, ...rowsBefore].some(({ value }) => value === kind);
    const areas = has('edge') ? await Promise.all(SERVICE_AREAS.map(area => this.#findArea(area, load))) : [];
    const functions = has('function_edge') ? await this.#findFunctions(load) : [];
    return [...areas.filter(({ now, before }) => now.count + (before?.count ?? 0) > 0), ...functions];
  }

  async #findArea({ label, path }: { label: string; path: string }, load: Load): Promise<Subject> {
    const query = `path:${path}*`;
    const parameters = { kind: 'edge', field: 'kind', query };
    const [now, before] = await Promise.all([
      this.#query(parameters, load.now, load),
      this.#queryBefore(parameters, load),
    ]);
    return {
      name: label,
      isFunction: false,
      link: (text, errorsOnly) =>
        this.#link(text, 'edge', errorsOnly ? `${query} ${toErrorQuery('edge')}` : query),
      now: sumCounts(now.rows),
      before: before && sumCounts(before.rows),
    };
  }

  /** The functions that got worse most, also those that have stopped; of those that did not get worse, the busiest. */
  async #findFunctions(load: Load): Promise<Subject[]> {
    const kind = 'function_edge';
    const parameters = { kind, field: 'function' };
    const [now, before] = await Promise.all([
      this.#query(parameters, load.now, load),
      this.#queryBefore(parameters, load),
    ]);
    // A function that is missing in a complete result has no invocations. Otherwise, it is not one of the busiest.
    const isComplete = (result: QueryResult) => result.rows.length < MAX_VALUES;
    const stopped = isComplete(now) ? (before?.rows ?? []) : [];
    const names = new Set([...now.rows, ...stopped].map(({ value }) => String(value)));
    const subjects = [...names].map((name): Subject => {
      const term = toFunctionQuery(name);
      const find = ({ rows }: QueryResult) => rows.filter(({ value }) => value === name);
      const rowsBefore = before && find(before);
      return {
        name,
        isFunction: true,
        link: (text, errorsOnly) =>
          this.#link(text, kind, errorsOnly ? `${term} ${toErrorQuery(kind)}` : term),
        now: sumCounts(find(now)),
        before:
          before !== undefined && (isComplete(before) || rowsBefore?.length === 1)
            ? sumCounts(rowsBefore)
            : undefined,
      };
    });
    return sortByChange(subjects, () => ({})).slice(0, MAX_FUNCTIONS);
  }

  /** Without its times, a function stays in the table. */
  async #loadTimes(subject: Pick<Subject, 'name' | 'now' | 'before'>, load: Load): Promise<void> {
    const times = await orUnknown(this.#findTimes(subject, load), load);
    if (!load.signal.aborted) this.#times.set(subject.name, times ?? {});
  }

  /**
   * The p95 of a function, or, with an empty name, of all functions, and how many invocations took longer, now and before. Buckets of
   * invocation-stats do not fit the period before, but a search counts the slow invocations of any period.
   */
  async #findTimes(
    { name, now, before }: Pick<Subject, 'name' | 'now' | 'before'>,
    load: Load,
  ): Promise<Times> {
    const endpoint = findEndpoint(this.#context.catalog, 'functions.invocation-stats');
    if (endpoint === undefined) return {};
    const interval = chooseInterval(endpoint, this.#state.settings);
    const parameters = { project: this.#state.project, function_id: name, interval: interval.name };
    const { rows, ranAt } = await runQuery(endpoint.name, parameters, load);
    const p95 = findTypicalP95(rows.filter(row => isInRange(interval, readStart(row), ranAt)));
    if (p95 === undefined || load.before === undefined) return { p95 };
    const query = `${toFunctionQuery(name)} execution_time_ms:>${p95.toFixed(2)}`.trim();
    const findSlow = async (bounds: Bounds, all: Counts | undefined) => {
      if (all === undefined || all.count === 0) return undefined;
      const slow = this.#query({ kind: 'function_edge', field: 'kind', query }, bounds, load);
      return sumCounts((await slow).rows).count / all.count;
    };
    const [slow, slowBefore] = await Promise.all([findSlow(load.now, now), findSlow(load.before, before)]);
    return { p95, slow, slowBefore };
  }

  #showSubjects(subjects: readonly Subject[]): void {
    const timesOf = ({ isFunction, name }: Subject): Times =>
      (isFunction ? this.#times.get(name) : undefined) ?? {};
    const cells = sortByChange(subjects, timesOf).map(subject => {
      const { name, link, now, isFunction } = subject;
      const { p95 } = timesOf(subject);
      const share = shareOf(now);
      const settings = { ...pickRange(this.#state.settings), function: name };
      return [
        h('span', { class: 'subject' }, name, h('small', {}, isFunction ? 'function' : 'service area')),
        link(formatCount(now.count), false),
        share === 0 ? '0%' : h('span', { class: 'share' }, link(formatPercent(share), true)),
        p95 === undefined ? '–' : this.#context.linkToView(formatMilliseconds(p95), 'functions', settings),
        describeWorst(subject, timesOf(subject)),
      ];
    });
    const numeric = true;
    this.#subjects.body.replaceChildren(
      createTable(
        'Service areas and functions, those that got worse first',
        [
          { heading: 'Name' },
          { heading: 'Requests', numeric },
          { heading: 'Errors', numeric },
          {
            heading: 'p95',
            numeric,
            title: 'The p95 of a typical bucket: percentiles of several buckets cannot be merged',
          },
          { heading: 'Change' },
        ],
        cells,
      ),
    );
  }

  /** Also the kinds that have records of the last day, but not in the time range. */
  async #showKinds(kinds: QueryResult, load: Load): Promise<void> {
    const { startMs, endMs } = toSpan(this.#state.settings);
    const wide = toBoundsOf({ startMs: startMs && Math.min(startMs, endMs - DAY_MS), endMs });
    const { rows } = await this.#query(BY_KIND, wide, load);
    const items = rows.map(row => {
      const kind = String(row['value']);
      const { count, errors } = sumCounts(kinds.rows.filter(({ value }) => value === kind));
      const age = Math.max(0, (Date.now() - Number(row['last']) / 1000) / 1000);
      return h(
        'li',
        {},
        h('i', { class: `swatch ${findKind(kind).color}` }),
        h('span', {}, findKind(kind).title),
        errors === 0
          ? undefined
          : h(
              'span',
              { class: 'share' },
              this.#link(formatPercent(errors / count), kind, toErrorQuery(kind)),
            ),
        this.#link(formatCount(count), kind),
        h('small', {}, `${formatElapsed(age)} ago`),
      );
    });
    this.#kinds.body.replaceChildren(h('ul', { class: 'kind-list' }, ...items));
  }

  async #showPatterns(load: Load): Promise<void> {
    const parameters = { kind: ALL_KINDS, query: toErrorQuery(ALL_KINDS) };
    const { rows } = await this.#query(parameters, load.now, load, 'logs.patterns');
    // The share is null if the period before has no errors. Then all patterns are new, unless that period is unknown.
    const known = load.before === undefined ? null : 0;
    const isNew = (row: Row) => (row['share_before'] !== null && row['count_before'] === 0 ? 1 : 0);
    const shown = rows
      .map((row): Row => ({ ...row, share_before: row['share_before'] ?? known }))
      .sort((a, b) => isNew(b) - isNew(a) || Number(b['count']) - Number(a['count']))
      .slice(0, MAX_PATTERNS);
    const items = shown.map(row => {
      const phrase = toPatternPhrase(String(row['pattern']));
      const term =
        phrase === '' ? '' : ` ${formatTerm({ field: undefined, value: phrase, isExcluded: false })}`;
      const age = Math.max(0, (Date.now() - Number(row['last']) / 1000) / 1000);
      return h(
        'li',
        { class: 'pattern-line' },
        this.#link(formatCount(Number(row['count'])), ALL_KINDS, `${toErrorQuery(ALL_KINDS)}${term}`),
        createTrend(row),
        h('span', { class: 'pattern-text mono', title: String(row['sample']) }, String(row['pattern'])),
        h('small', {}, `${formatElapsed(age)} ago`),
      );
    });
    replaceChildren(
      this.#patterns.body,
      items.length === 0
        ? h('p', { class: 'muted' }, `No errors ${describeRange(this.#state.settings)}.`)
        : h('ul', { class: 'pattern-lines' }, ...items),
    );
  }
}

const toBoundsOf = ({ startMs, endMs }: Span): Bounds => ({
  iso_timestamp_start: startMs === 0 ? '' : new Date(startMs).toISOString(),
  iso_timestamp_end: new Date(endMs).toISOString(),
});

const toBefore = ({ startMs, endMs }: Span): Bounds | undefined =>
  startMs === 0 ? undefined : toBoundsOf({ startMs: 2 * startMs - endMs, endMs: startMs });

const UNKNOWN_BEFORE =
  'There is no comparison: the period before starts before the retention of the tier, or it could not be loaded.';

function sumCounts(rows: readonly Row[] = []): Counts {
  const sum = (key: string) => rows.reduce((total, row) => total + readNumber(row, key), 0);
  return { count: sum('count'), errors: sum('error_count') };
}

/** The median of the p95 of the buckets, by the number of their invocations. */
function findTypicalP95(rows: readonly Row[]): number | undefined {
  const known = rows.filter(row => typeof row['p95_execution_time'] === 'number');
  const sorted = known.sort(
    (a, b) => readNumber(a, 'p95_execution_time') - readNumber(b, 'p95_execution_time'),
  );
  let rest = sumCounts(sorted).count / 2;
  const middle = sorted.find(row => {
    rest -= readNumber(row, 'count');
    return rest <= 0;
  });
  return middle === undefined ? undefined : readNumber(middle, 'p95_execution_time');
}

const shareOf = ({ count, errors }: Counts): number => (count === 0 ? 0 : errors / count);

/** How many more invocations are slow than in the period before, as a share of all. */
const slowdownOf = ({ slow = 0, slowBefore = slow }: Times): number => slow - slowBefore;

function describeSlow({ slow, slowBefore }: Times): string {
  if (slow === undefined || slowBefore === undefined) return '';
  return `${formatPercent(slow)} took longer, ${formatPercent(slowBefore)} before`;
}

/** Those that got worse first: more errors count most, then those that stopped, then longer executions. */
function sortByChange(subjects: readonly Subject[], timesOf: (subject: Subject) => Times): Subject[] {
  const rate = (subject: Subject) => {
    const { now, before = { count: 0, errors: 0 } } = subject;
    const stopped = hasStopped(subject) ? 0.5 : 0;
    return (
      10 * Math.max(0, shareOf(now) - shareOf(before)) + stopped + Math.max(0, slowdownOf(timesOf(subject)))
    );
  };
  return subjects.toSorted((a, b) => rate(b) - rate(a) || b.now.count - a.now.count);
}

const hasStopped = ({ now, before }: Subject): boolean =>
  now.count === 0 && (before?.count ?? 0) >= MIN_INVOCATIONS;

function describeWorst(subject: Subject, times: Times): HTMLElement {
  const { now, before } = subject;
  if (before === undefined) return h('span', {}, '–');
  if (hasStopped(subject))
    return h('span', { class: 'worse' }, `stopped: ${formatCount(before.count)} requests before`);
  const moreErrors = shareOf(now) - shareOf(before);
  const errors = `errors ${formatPercent(shareOf(before))} → ${formatPercent(shareOf(now))}`;
  if (moreErrors >= 0.005) return h('span', { class: 'worse' }, errors);
  if (slowdownOf(times) > 0.02) return h('span', { class: 'worse' }, `slow: ${describeSlow(times)}`);
  if (moreErrors <= -0.005) return h('span', {}, errors);
  return h(
    'span',
    { class: 'muted' },
    before.count === 0 ? 'new' : `${formatChange(now.count / before.count - 1)} requests`,
  );
}

function describeCount(count: number, before: number | undefined): string | undefined {
  if (before === undefined) return undefined;
  const change = before === 0 ? '' : `${formatChange(count / before - 1)}, `;
  return `${change}${formatCount(before)} before`;
}

function createTile(title: string, value: HTMLElement, detail = '', isWorse = false): HTMLElement {
  return h(
    'div',
    { class: `card tile ${isWorse ? 'worse' : ''}` },
    h('h2', {}, title),
    h('p', { class: 'tile-value' }, value),
    h('p', { class: 'tile-detail' }, detail),
  );
}

/** A card that is loaded after the others. An error of one does not hide the others. */
class Section {
  readonly body = h('div', {});
  readonly element: HTMLElement;
  #isFilled = false;

  constructor(title: string) {
    this.element = h('section', { class: 'card overview-section' }, h('h2', {}, title), this.body);
    this.clear();
  }

  clear(): void {
    this.#showNote(h('p', { class: 'muted' }, 'Loading…'));
  }

  /** The previous content stays visible, dimmed, until the new one arrives. */
  async load(signal: AbortSignal, fill: () => Promise<void>): Promise<void> {
    if (!this.#isFilled) this.clear();
    this.element.setAttribute('aria-busy', 'true');
    try {
      await fill();
      this.#isFilled = true;
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError) || error.code === 'unauthorized') throw error;
      this.#showNote(h('p', { class: 'muted', role: 'alert' }, error.message));
    } finally {
      this.element.removeAttribute('aria-busy');
    }
  }

  #showNote(note: HTMLElement): void {
    this.#isFilled = false;
    this.body.replaceChildren(note);
  }
}

/** Undefined if the query fails. */
async function orUnknown<T>(query: Promise<T>, { signal }: Load): Promise<T | undefined> {
  try {
    return await query;
  } catch (error) {
    if (signal.aborted || !(error instanceof ApiError) || error.code === 'unauthorized') throw error;
    return undefined;
  }
}
