// Any other endpoint of the catalog: a form made from its parameters, its rows as a table, and a chart where it has a
// time column.
import type { Place } from '../address.ts';
import type { Endpoint } from '../api/catalog.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatExact } from '../numbers.ts';
import { Panel, type Question } from '../panel/panel.ts';
import { makeEndpointForm, settingOf } from './endpoint-form.ts';
import { chartsOf, type Drawing, tableOf } from './endpoint-rows.ts';
import type { View, ViewContext, ViewKind } from './view.ts';

const REFRESH_SECONDS = 60;

export function endpointView(endpoint: Endpoint): ViewKind {
  return {
    name: `endpoint.${endpoint.name}`,
    title: endpoint.name,
    endpoint: endpoint.name,
    defaults: {},
    open: context => openEndpoint(endpoint, context),
  };
}

function openEndpoint(endpoint: Endpoint, context: ViewContext): View {
  const form = makeEndpointForm(endpoint, context.change);
  const charts = new ChartRow(endpoint.name);
  const tableHost = h('div', {});
  const rowCount = h('p', { class: 'quiet', role: 'status' });
  const panel = new Panel({
    content: h(
      'div',
      { class: 'stack' },
      charts.element,
      h('div', { class: 'card' }, h('div', { class: 'card-head' }, h('h2', {}, 'Rows'), rowCount), tableHost),
    ),
    draw(answer) {
      charts.draw(chartsOf(endpoint, answer));
      tableHost.replaceChildren(tableOf(endpoint, answer.rows));
      const cut = answer.clipped.includes('row-limit') ? ', cut at the endpoint’s limit' : '';
      rowCount.textContent = `${formatCount(answer.rows.length)} rows${cut}`;
    },
    markFault: form.markFault,
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
    show(place) {
      form.set(place.settings);
      const needsProject = endpoint.parameters.some(({ name, required }) => name === 'project' && required);
      if (needsProject && place.project === '') panel.askForProject();
      else panel.ask(toQuestion(endpoint, place));
    },
    close() {
      panel.close();
      charts.close();
    },
  };
}

function toQuestion({ name, parameters }: Endpoint, { project, settings }: Place): Question {
  const given = parameters.map(parameter => [
    parameter.name,
    parameter.name === 'project' ? project : (settings[settingOf(parameter.name)] ?? ''),
  ]);
  return {
    endpoint: name,
    parameters: () => Object.fromEntries(given),
    windowSeconds: undefined,
    refreshSeconds: REFRESH_SECONDS,
    empty: { title: 'No rows', hints: [], log: 'log that it reads', windowSeconds: undefined },
  };
}

/** As many charts as the rows need. */
class ChartRow {
  readonly element = h('div', { class: 'stack' });
  readonly #name: string;
  readonly #charts: TimeChart[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  draw(drawings: readonly Drawing[]): void {
    this.element.hidden = drawings.length === 0;
    while (this.#charts.length < drawings.length) this.#charts.push(this.#makeChart());
    for (const [i, chart] of this.#charts.entries()) {
      const drawing = drawings[i];
      chart.element.hidden = drawing === undefined;
      if (drawing === undefined) continue;
      chart.setTitle(drawing.data.series.map(({ label }) => label).join(', '));
      chart.draw(drawing.data, drawing.entries);
    }
  }

  close(): void {
    for (const chart of this.#charts) chart.close();
  }

  #makeChart(): TimeChart {
    const chart = new TimeChart('Over time', {
      label: `${this.#name} over time, lines`,
      shape: 'lines',
      format: formatExact,
      formatAxis: formatCompact,
      whole: false,
    });
    this.element.append(chart.element);
    return chart;
  }
}
