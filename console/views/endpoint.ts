// The view of any endpoint that has no specialized view: a form for its parameters, its rows as a table, and charts if it
// has a time column.
import type { Endpoint, Parameter } from '../api/catalog.ts';
import type { QueryResult } from '../api/client.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { createSelect, createTextField, type Field } from '../components/controls.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatDecimal } from '../format.ts';
import type { UrlState } from '../url-state.ts';
import { type ChartContent, createChartContents, createRowTable } from './endpoint-rows.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

const REFRESH_SECONDS = 60;

export function defineEndpointView(endpoint: Endpoint): ViewDefinition {
  return {
    name: `endpoint.${endpoint.name}`,
    title: endpoint.name,
    defaults: {},
    open: context => openEndpoint(endpoint, context),
  };
}

function openEndpoint(endpoint: Endpoint, context: ViewContext): View {
  const form = createForm(endpoint, context.updateSettings);
  const charts = new ChartGroup(endpoint.name);
  const tableHost = h('div', {});
  const rowCount = h('p', { class: 'muted', role: 'status' });
  const panel = new QueryPanel({
    content: h(
      'div',
      { class: 'stack' },
      charts.element,
      h(
        'div',
        { class: 'card' },
        h('div', { class: 'card-header' }, h('h2', {}, 'Rows'), rowCount),
        tableHost,
      ),
    ),
    render(result) {
      charts.render(createChartContents(endpoint, result));
      tableHost.replaceChildren(createRowTable(endpoint, result.rows));
      rowCount.textContent = describeRowCount(result);
    },
    markInvalid: form.markInvalid,
    context,
  });
  return {
    element: h(
      'div',
      { class: 'view' },
      h('p', { class: 'view-description' }, endpoint.description),
      h('div', { class: 'controls' }, ...form.elements),
      panel.element,
    ),
    show(state) {
      form.setValues(state.settings);
      const needsProject = endpoint.parameters.some(({ name, required }) => name === 'project' && required);
      if (needsProject && state.project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint, state));
    },
    close() {
      panel.close();
      charts.close();
    },
  };
}

function createQuery({ name, parameters }: Endpoint, { project, settings }: UrlState): Query {
  const values = parameters.map(parameter => [
    parameter.name,
    parameter.name === 'project' ? project : (settings[toSetting(parameter.name)] ?? ''),
  ]);
  return {
    endpoint: name,
    parameters: () => Object.fromEntries(values),
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

interface Form {
  readonly elements: readonly HTMLElement[];
  setValues(settings: UrlState['settings']): void;
  markInvalid(param: string | undefined): void;
}

/** The name of a parameter in the URL. The prefix prevents conflicts with `view` and `project`. */
const toSetting = (parameter: string): string => `p.${parameter}`;

/** The form has no field for the project, because the shell has one. */
function createForm({ parameters }: Endpoint, updateSettings: ViewContext['updateSettings']): Form {
  const fields = new Map<string, Field>();
  for (const parameter of parameters.filter(({ name }) => name !== 'project'))
    fields.set(
      parameter.name,
      createField(parameter, value => updateSettings({ [toSetting(parameter.name)]: value })),
    );
  return {
    elements: [...fields.values()].map(({ element }) => element),
    setValues(settings) {
      for (const { name, fallback } of parameters)
        fields.get(name)?.setValue(settings[toSetting(name)] ?? fallback ?? '');
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
    case 'choice': {
      const none = fallback === null ? [{ value: '', label: '–' }] : [];
      const all = [...none, ...choices.map(value => ({ value, label: value }))];
      return createSelect(name, all, options, onCommit);
    }
    case 'timestamp':
      return createTextField(name, { ...options, placeholder: '2026-11-14T09:30:00Z' }, onCommit);
    default: {
      const placeholder = type === 'pattern' ? 'regular expression' : '';
      return createTextField(name, { ...options, placeholder }, onCommit);
    }
  }
}

/** Creates charts as needed and hides those that the current rows do not need. */
class ChartGroup {
  readonly element = h('div', { class: 'stack' });
  readonly #endpoint: string;
  readonly #charts: TimeChart[] = [];

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  render(contents: readonly ChartContent[]): void {
    this.element.hidden = contents.length === 0;
    while (this.#charts.length < contents.length) this.#charts.push(this.#createChart());
    for (const [i, chart] of this.#charts.entries()) {
      const content = contents[i];
      chart.element.hidden = content === undefined;
      if (content === undefined) continue;
      chart.setTitle(content.data.series.map(({ label }) => label).join(', '));
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
    });
    this.element.append(chart.element);
    return chart;
  }
}

function describeRowCount({ rows, clipped }: QueryResult): string {
  const unit = rows.length === 1 ? 'row' : 'rows';
  const rowLimit = clipped.includes('row-limit') ? ', limited by the endpoint’s max_rows' : '';
  const byteLimit = clipped.includes('byte-limit') ? ', limited by the size of a response' : '';
  return `${formatCount(rows.length)} ${unit}${rowLimit}${byteLimit}`;
}
