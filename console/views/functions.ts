// The functions view: invocations, errors and execution times of serverless functions.
import type { Endpoint } from '../api/catalog.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import { createZoomBar, formatZoom, parseZoom } from '../chart/zoom.ts';
import { type ComboboxOptions, createComboboxField } from '../components/combobox.ts';
import { createSegmentedControl } from '../components/controls.ts';
import { CollapsibleTable } from '../components/data-table.ts';
import type { Action } from '../components/messages.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import { formatPeriod, formatShortDuration } from '../format.ts';
import { formatTerm } from '../logs/search-expression.ts';
import { createFunctionTable, FunctionCharts } from './function-charts.ts';
import { suggestFunctions } from './function-suggestions.ts';
import { createWiderAction, type Interval, type Intervals, readIntervals } from './interval.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

export function defineFunctionsView(endpoint: Endpoint): ViewDefinition {
  const intervals = readIntervals(endpoint);
  return {
    name: 'functions',
    title: 'Functions',
    defaults: { interval: intervals.default.name },
    open: context => openFunctions(endpoint, intervals, context),
  };
}

function openFunctions(endpoint: Endpoint, intervals: Intervals, context: ViewContext): View {
  const { updateSettings } = context;
  const openLogs = context.logsOpenerFor('function_edge');
  let project = '';
  let functionId = '';
  let interval = intervals.default;
  let zoom: TimeRange | undefined;
  const controls = createControls(intervals, context, (text, signal) =>
    suggestFunctions(
      { catalog: context.catalog, project, windowSeconds: interval.windowSeconds },
      text,
      signal,
    ),
  );
  const zoomBar = createZoomBar(() => updateSettings({ zoom: '' }));
  const charts = new FunctionCharts({
    onSelectRange: range => updateSettings({ zoom: formatZoom(range) }),
    onOpenBucket:
      openLogs &&
      (range => {
        const term = { field: 'function', value: functionId, isExcluded: false };
        openLogs(range, functionId === '' ? '' : formatTerm(term));
      }),
  });
  const toWiderAction = (current: Interval) =>
    createWiderAction(intervals, current, name => updateSettings({ interval: name, zoom: '' }));
  const table = new CollapsibleTable('All values as a table');
  const panel = new QueryPanel({
    content: h('div', { class: 'stack' }, charts.element, table.element),
    render: result => {
      charts.render(result, interval, zoom);
      table.render(() => createFunctionTable(result.rows));
    },
    markInvalid: param => controls.functionField.setInvalid(param === 'function_id'),
    context,
  });
  return {
    shortcuts: [...panel.shortcuts, zoomBar.shortcut],
    element: h('div', { class: 'view' }, controls.element, zoomBar.element, panel.element),
    show({ settings, ...state }) {
      project = state.project;
      const selected = intervals.find(settings['interval']);
      functionId = settings['function'] ?? '';
      controls.setValues(selected, functionId);
      zoom = parseZoom(settings['zoom']);
      zoomBar.show(zoom);
      interval = zoom === undefined ? selected : intervals.findFinest(selected, zoom.startMicros / 1000);
      if (project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint.name, project, functionId, interval, toWiderAction(interval)));
    },
    close() {
      panel.close();
      charts.close();
    },
  };
}

function createControls(
  intervals: Intervals,
  { updateSettings }: ViewContext,
  suggest: ComboboxOptions['suggest'],
) {
  const intervalControl = createSegmentedControl(
    'Interval',
    intervals.all.map(({ name, windowSeconds }) => ({
      value: name,
      label: formatShortDuration(windowSeconds),
      title: `The last ${formatPeriod(windowSeconds)}`,
    })),
    interval => updateSettings({ interval, zoom: '' }),
  );
  const functionField = createComboboxField('Function id', {
    placeholder: 'all functions',
    suggest,
    onCommit: value => updateSettings({ function: value }),
  });
  return {
    element: h('div', { class: 'controls' }, intervalControl.element, functionField.element),
    functionField,
    setValues(interval: Interval, functionId: string) {
      intervalControl.setValue(interval.name);
      functionField.setValue(functionId);
    },
  };
}

function createQuery(
  endpoint: string,
  project: string,
  functionId: string,
  interval: Interval,
  widerRangeAction: Action | undefined,
): Query {
  const { name, windowSeconds, refreshSeconds } = interval;
  const subject = functionId === '' ? '' : ` of function ${functionId}`;
  return {
    endpoint,
    key: JSON.stringify([project, functionId, name]),
    parameters: () => ({ project, function_id: functionId, interval: name }),
    windowSeconds,
    refreshSeconds,
    emptyState: {
      title: `No invocations${subject} in project ${project} in the last ${formatPeriod(windowSeconds)}`,
      hints: functionId === '' ? [] : ['The function id must match exactly. Check its spelling.'],
      log: 'function log',
      windowSeconds,
      firstLog: { kind: 'function_edge', project },
      widerRangeAction,
    },
  };
}
