// The view of any endpoint that has no specialized view: a form for its parameters, its rows as a table with a button for the next
// page, and charts if it has a time column.
import type { Endpoint, Parameter } from '../api/catalog.ts';
import type { QueryResult } from '../api/client.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import { TimeChart } from '../chart/time-chart.ts';
import {
  createCopyButton,
  createSelect,
  createTextField,
  type Field,
  type FieldOptions,
} from '../components/controls.ts';
import type { TableSort } from '../components/data-table.ts';
import { createActionButton, createInvalidPageMessage } from '../components/messages.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatDecimal } from '../format.ts';
import { downloadText } from '../logs/csv.ts';
import { toCurl } from '../logs/curl.ts';
import { CUSTOM, fromLocalInput, type Span, toLocalInput, toSpan, zoomTo } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { type ChartContent, createChartContents, createRowTable, toRowCsv } from './endpoint-rows.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

const REFRESH_SECONDS = 60;

export function defineEndpointView(endpoint: Endpoint): ViewDefinition {
  return {
    name: `endpoint.${endpoint.name}`,
    title: endpoint.name,
    isGeneric: true,
    defaults: {},
    firstPage: toFirstPage(endpoint),
    open: context => openEndpoint(endpoint, context),
  };
}

function openEndpoint(endpoint: Endpoint, context: ViewContext): View {
  const form = createForm(endpoint, context.updateSettings);
  let span: Span | undefined;
  const charts = new ChartGroup(endpoint.name, range => context.updateSettings(zoomTo(range)));
  const tableHost = h('div', {});
  const rowCount = h('p', { class: 'muted', role: 'status' });
  const sort: TableSort = {};
  let shownRows: QueryResult['rows'] = [];
  let parameters: Readonly<Record<string, string>> = {};
  const csv = createActionButton({
    label: 'Download CSV',
    run: () => downloadText(`${endpoint.name}.csv`, 'text/csv;charset=utf-8', toRowCsv(endpoint, shownRows)),
  });
  csv.classList.add('small');
  const curl = createCopyButton('Copy as curl', () => toCurl(endpoint.name, parameters));
  const firstPage = toFirstPage(endpoint);
  const pageButtons = new PageButtons(firstPage, context.updateSettings);
  const emptyPageButtons = new PageButtons(firstPage, context.updateSettings);
  let isFirstPage = true;
  const panel = new QueryPanel({
    content: h(
      'div',
      { class: 'stack' },
      charts.element,
      h(
        'div',
        { class: 'card' },
        h(
          'div',
          { class: 'card-header' },
          h('h2', {}, 'Rows'),
          rowCount,
          h('div', { class: 'logs-actions' }, curl, csv),
        ),
        tableHost,
        pageButtons.element,
      ),
    ),
    render(result) {
      shownRows = result.rows;
      charts.render(createChartContents(endpoint, result, span));
      tableHost.replaceChildren(createRowTable(endpoint, result.rows, sort));
      rowCount.textContent = describeRowCount(result);
      pageButtons.show(isFirstPage, result);
    },
    markInvalid: form.markInvalid,
    createErrorMessage: error =>
      toSetting(error.param ?? '') in firstPage
        ? createInvalidPageMessage(error, {
            label: 'First page',
            run: () => context.updateSettings(firstPage),
          })
        : undefined,
    context,
  });
  return {
    shortcuts: panel.shortcuts,
    element: h(
      'div',
      { class: 'view' },
      h('p', { class: 'view-description' }, endpoint.description),
      h('div', { class: 'controls' }, ...form.elements),
      panel.element,
    ),
    show(state) {
      isFirstPage = Object.keys(firstPage).every(setting => (state.settings[setting] ?? '') === '');
      form.setValues(state.settings);
      // Only a range that the user chose in a chart or entered: the rows of this endpoint can be from any time.
      span = state.settings['range'] === CUSTOM ? toSpan(state.settings) : undefined;
      const needsProject = endpoint.parameters.some(({ name, required }) => name === 'project' && required);
      if (needsProject && state.project === '') panel.promptForProject();
      else {
        const query = createQuery(endpoint, state, context.updateSettings);
        parameters = query.parameters({ isAutoRefresh: false, isManualRefresh: false });
        panel.run({
          ...query,
          describeEmpty: async result => {
            if (isFirstPage && result.nextCursor === undefined) return undefined;
            emptyPageButtons.show(isFirstPage, result);
            return createEmptyPageMessage(result, emptyPageButtons.element);
          },
        });
      }
    },
    close() {
      panel.close();
      charts.close();
    },
  };
}

function createQuery(
  endpoint: Endpoint,
  { project, settings }: UrlState,
  updateSettings: ViewContext['updateSettings'],
): Query {
  const { name, parameters } = endpoint;
  const values = parameters.map(parameter => [
    parameter.name,
    parameter.name === 'project' ? project : (settings[toSetting(parameter.name)] ?? ''),
  ]);
  return {
    endpoint: name,
    key: JSON.stringify(values),
    parameters: () => Object.fromEntries(values),
    swapRange: () => updateSettings({ ...toFirstPage(endpoint), ...swapRange(settings) }),
    windowSeconds: undefined,
    refreshSeconds: REFRESH_SECONDS,
    emptyState: {
      title: 'No rows',
      hints: [],
      log: 'log that this endpoint reads',
      windowSeconds: undefined,
    },
  };
}

/** Exchanges each setting that ends in `_start` with the one that ends in `_end`. */
function swapRange(settings: UrlState['settings']): UrlState['settings'] {
  const starts = Object.keys(settings).filter(name => name.endsWith('_start'));
  const swapped = starts.flatMap(start => {
    const end = start.replace(/_start$/, '_end');
    return [
      [start, settings[end] ?? ''],
      [end, settings[start] ?? ''],
    ];
  });
  return Object.fromEntries(swapped);
}

interface Form {
  readonly elements: readonly HTMLElement[];
  setValues(settings: UrlState['settings']): void;
  markInvalid(param: string | undefined): void;
}

/** The name of a parameter in the URL. The prefix prevents conflicts with `view` and `project`. */
const toSetting = (parameter: string): string => `p.${parameter}`;

/** The form has no field for the project, because the shell has one, and none for a cursor, which only responses contain. */
function createForm(endpoint: Endpoint, updateSettings: ViewContext['updateSettings']): Form {
  const { parameters } = endpoint;
  const firstPage = toFirstPage(endpoint);
  const fields = new Map<string, Field>();
  for (const parameter of parameters.filter(({ name, type }) => name !== 'project' && type !== 'cursor'))
    fields.set(
      parameter.name,
      createField(parameter, value => updateSettings({ ...firstPage, [toSetting(parameter.name)]: value })),
    );
  return {
    elements: [...fields.values()].map(({ element }) => element),
    setValues(settings) {
      for (const { name, fallback, default: absent } of parameters)
        fields.get(name)?.setValue(settings[toSetting(name)] ?? fallback ?? String(absent ?? ''));
    },
    markInvalid(param) {
      for (const [name, field] of fields) field.setInvalid(name === param);
    },
  };
}

function createField(parameter: Parameter, onCommit: (value: string) => void): Field {
  const { name, type, required, description: hint, choices = [], fallback = null } = parameter;
  const options = { required, hint, mono: true };
  switch (type) {
    case 'boolean':
      return createSelect(
        name,
        ['', 'true', 'false'].map(value => ({ value, label: value || '–' })),
        options,
        onCommit,
      );
    case 'choice': {
      const none = fallback === null ? [{ value: '', label: '–' }] : [];
      const all = [...none, ...choices.map(value => ({ value, label: value }))];
      return createSelect(name, all, options, onCommit);
    }
    case 'timestamp':
      return createTimeField(name, options, onCommit);
    default: {
      const placeholder = type === 'pattern' ? 'regular expression' : '';
      return createTextField(name, { ...options, placeholder }, onCommit);
    }
  }
}

/** A date picker in the user's time zone. The setting is in UTC. */
function createTimeField(name: string, options: FieldOptions, onCommit: (value: string) => void): Field {
  const field = createTextField(name, { ...options, type: 'datetime-local' }, value =>
    onCommit(fromLocalInput(value)),
  );
  // Without an offset, a time is in UTC, as in the API.
  const withOffset = (value: string) => (/T[^Z+-]*$/i.test(value) ? `${value}Z` : value);
  return { ...field, setValue: value => field.setValue(toLocalInput(withOffset(value))) };
}

/** The settings of the first page; empty if the endpoint has no parameter of type `cursor`. */
function toFirstPage({ parameters }: Endpoint): UrlState['settings'] {
  const cursor = parameters.find(({ type }) => type === 'cursor');
  return cursor === undefined ? {} : { [toSetting(cursor.name)]: '' };
}

/** The buttons of the pages. They stay the same elements, so that a refresh of the rows does not take the focus from them. */
class PageButtons {
  readonly element: HTMLElement;
  readonly #first: HTMLElement;
  readonly #next: HTMLElement;
  #nextCursor = '';

  constructor(firstPage: UrlState['settings'], updateSettings: ViewContext['updateSettings']) {
    const [setting = ''] = Object.keys(firstPage);
    this.#first = createActionButton({ label: 'First page', run: () => updateSettings(firstPage) });
    this.#next = createActionButton({
      label: 'Next page',
      run: () => updateSettings({ [setting]: this.#nextCursor }),
    });
    this.element = h('div', { class: 'page-buttons' }, this.#first, this.#next);
  }

  show(isFirstPage: boolean, { nextCursor = '' }: QueryResult): void {
    this.#nextCursor = nextCursor;
    this.#first.hidden = isFirstPage;
    this.#next.hidden = nextCursor === '';
    this.element.hidden = this.#first.hidden && this.#next.hidden;
  }
}

/** For a page without rows that is not the only one: the time limit can end its query before it finds a row. */
function createEmptyPageMessage({ nextCursor }: QueryResult, buttons: HTMLElement): HTMLElement {
  const [title, reason] =
    nextCursor === undefined
      ? ['No more rows', 'The pages before this one have all rows.']
      : ['No rows so far', 'The time limit ended the query before it reached the start of the time range.'];
  return h('div', { class: 'message', role: 'status' }, h('h2', {}, title), h('p', {}, reason), buttons);
}

/** Creates charts as needed and hides those that the current rows do not need. */
class ChartGroup {
  readonly element = h('div', { class: 'charts' });
  readonly #endpoint: string;
  readonly #onSelectRange: (range: TimeRange) => void;
  readonly #charts: TimeChart[] = [];

  constructor(endpoint: string, onSelectRange: (range: TimeRange) => void) {
    this.#endpoint = endpoint;
    this.#onSelectRange = onSelectRange;
  }

  render(contents: readonly ChartContent[]): void {
    this.element.hidden = contents.length === 0;
    while (this.#charts.length < contents.length) this.#charts.push(this.#createChart());
    for (const [i, chart] of this.#charts.entries()) {
      const content = contents[i];
      chart.element.hidden = content === undefined;
      if (content === undefined) continue;
      chart.setTitle(content.title);
      chart.render(content.data, content.entries);
    }
  }

  close(): void {
    for (const chart of this.#charts) chart.close();
  }

  #createChart(): TimeChart {
    const chart = new TimeChart('Over time', {
      label: `${this.#endpoint} over time, lines`,
      type: 'lines',
      formatValue: formatDecimal,
      formatTick: formatCompact,
      cursorGroup: this.#endpoint,
      onSelectRange: this.#onSelectRange,
    });
    this.element.append(chart.element);
    return chart;
  }
}

function describeRowCount({ rows, clipped }: QueryResult): string {
  const unit = rows.length === 1 ? 'row' : 'rows';
  const rowLimit = clipped.includes('row-limit') ? ', limited by the endpoint’s max_rows' : '';
  const byteLimit = clipped.includes('byte-limit') ? ', limited by the size of a response' : '';
  const timeLimit = clipped.includes('time-limit')
    ? ', ended by the time limit before the page was full'
    : '';
  const retention = clipped.includes('retention') ? ', only those within the retention' : '';
  return `${formatCount(rows.length)} ${unit}${rowLimit}${byteLimit}${timeLimit}${retention}`;
}
