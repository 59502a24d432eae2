// The functions view: invocations, errors and execution times of serverless functions.
import type { Endpoint } from '../api/catalog.ts';
import { type ComboboxOptions, createComboboxField } from '../components/combobox.ts';
import { CollapsibleTable } from '../components/data-table.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import { formatTerm } from '../logs/search-expression.ts';
import { describeRange, zoomTo } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { createFunctionTable, FunctionCharts } from './function-charts.ts';
import { readStart } from './function-stats.ts';
import { suggestFunctions } from './function-suggestions.ts';
import { chooseInterval, createWiderAction, type Interval, isInRange } from './interval.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

export function defineFunctionsView(endpoint: Endpoint): ViewDefinition {
  return {
    name: 'functions',
    title: 'Functions',
    kind: 'function_edge',
    toQuery: settings => toFunctionQuery(settings['function'] ?? ''),
    defaults: {},
    open: context => openFunctions(endpoint, context),
  };
}

/** The search expressions for the series of the charts. */
const SERIES_QUERIES: Readonly<Record<string, string>> = {
  error_count: 'status:>=400',
  error_rate: 'status:>=400',
  success_count: 'status:<400',
};

function openFunctions(endpoint: Endpoint, context: ViewContext): View {
  const { updateSettings } = context;
  const openLogs = context.logsOpenerFor('function_edge');
  let project = '';
  let functionId = '';
  let interval = chooseInterval(endpoint, {});
  const { catalog } = context;
  const functionField = createFunctionField(context, (text, signal) =>
    suggestFunctions({ catalog, project, settings: interval.settings }, text, signal),
  );
  const limit = h('p', { class: 'note', role: 'status' });
  const charts = new FunctionCharts({
    onSelectRange: range => updateSettings(zoomTo(range)),
    onOpenBucket:
      openLogs &&
      ((range, series) => {
        const terms = [toFunctionQuery(functionId), SERIES_QUERIES[series ?? ''] ?? ''];
        openLogs(range, terms.join(' ').trim());
      }),
  });
  const table = new CollapsibleTable('All values as a table');
  const panel = new QueryPanel({
    content: h('div', { class: 'stack' }, charts.element, table.element),
    render: result => {
      charts.render(result, interval);
      table.render(() => createFunctionTable(result.rows));
    },
    markInvalid: param => functionField.setInvalid(param === 'function_id'),
    context,
  });
  return {
    shortcuts: panel.shortcuts,
    element: h(
      'div',
      { class: 'view' },
      h('div', { class: 'controls' }, functionField.element),
      limit,
      panel.element,
    ),
    show(state) {
      project = state.project;
      functionId = state.settings['function'] ?? '';
      functionField.setValue(functionId);
      interval = chooseInterval(endpoint, state.settings);
      limit.textContent = interval.limit;
      limit.hidden = interval.limit === '';
      if (project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint.name, state, interval, updateSettings));
    },
    close() {
      panel.close();
      charts.close();
    },
  };
}

/** The search expression for the invocations of a function; empty: of all functions. */
export const toFunctionQuery = (functionId: string): string =>
  functionId === '' ? '' : formatTerm({ field: 'function', value: functionId, isExcluded: false });

function createFunctionField({ updateSettings }: ViewContext, suggest: ComboboxOptions['suggest']) {
  return createComboboxField('Function id', {
    placeholder: 'all functions',
    suggest,
    onCommit: value => updateSettings({ function: value }),
  });
}

function createQuery(
  endpoint: string,
  { project, settings }: UrlState,
  interval: Interval,
  updateSettings: ViewContext['updateSettings'],
): Query {
  const { name, windowSeconds, refreshSeconds } = interval;
  const functionId = settings['function'] ?? '';
  const subject = functionId === '' ? '' : ` of function ${functionId}`;
  return {
    endpoint,
    key: JSON.stringify([project, functionId, settings]),
    parameters: () => ({ project, function_id: functionId, interval: name }),
    windowSeconds,
    refreshSeconds,
    keep: (row, ranAt) => isInRange(interval, readStart(row), ranAt),
    emptyState: {
      title: `No invocations${subject} in project ${project} ${describeRange(settings)}`,
      hints: functionId === '' ? [] : ['The function id must match exactly. Check its spelling.'],
      log: 'function log',
      windowSeconds,
      source: { kind: 'function_edge', project },
      widerRangeAction: createWiderAction(settings, updateSettings),
    },
  };
}
