// Any other endpoint of the catalog: a form made from its parameters, its rows as a table, and a chart where it has a
// time column.
import type { Place } from '../address.ts';
import type { Answer } from '../api/answer.ts';
import type { Endpoint } from '../api/catalog.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatExact } from '../numbers.ts';
import { Panel, type Question } from '../panel/panel.ts';
import { makeEndpointForm, settingOf } from './endpoint-form.ts';
import { chartOf, tableOf } from './endpoint-rows.ts';
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

function openEndpoint(endpoint: Endpoint, { change, onUnauthorized }: ViewContext): View {
  const form = makeEndpointForm(endpoint, change);
  const chart = new TimeChart('Over time', {
    label: `${endpoint.name} over time, lines`,
    shape: 'lines',
    format: formatExact,
    formatAxis: formatCompact,
    whole: false,
  });
  const tableHost = h('div', {});
  const rowCount = h('p', { class: 'quiet', role: 'status' });
  const panel = new Panel({
    content: h(
      'div',
      { class: 'stack' },
      chart.element,
      h('div', { class: 'card' }, h('div', { class: 'card-head' }, h('h2', {}, 'Rows'), rowCount), tableHost),
    ),
    draw(answer) {
      drawChart(endpoint, answer, chart);
      tableHost.replaceChildren(tableOf(endpoint, answer.rows));
      const cut = answer.clipped.includes('row-limit') ? ', cut at the endpoint’s limit' : '';
      rowCount.textContent = `${formatCount(answer.rows.length)} rows${cut}`;
    },
    markFault: form.markFault,
    onUnauthorized,
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
      chart.close();
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

function drawChart(endpoint: Endpoint, answer: Answer, chart: TimeChart): void {
  const drawing = chartOf(endpoint, answer);
  chart.element.hidden = drawing === undefined;
  if (drawing !== undefined) chart.draw(drawing.data, drawing.entries);
}
