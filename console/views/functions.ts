// Functions: how often they ran and failed, and how long they took.
import type { Place } from '../address.ts';
import type { Answer, Row } from '../api/answer.ts';
import { bucketStarts, type Window } from '../buckets.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatMilliseconds } from '../numbers.ts';
import { Panel, type Question } from '../panel/panel.ts';
import { makeTable, numberCell, TableBehind, timeCell } from '../parts/data-table.ts';
import { makeTextField } from '../parts/field.ts';
import { makeSegmented } from '../parts/segmented.ts';
import { COUNT_SERIES, countEntries, TIME_SERIES, timeEntries } from './functions-series.ts';
import type { View, ViewContext, ViewKind } from './view.ts';

interface Interval extends Window {
  readonly words: string;
  readonly refreshSeconds: number;
}

const INTERVALS: Readonly<Record<string, Interval>> = {
  '5min': { words: '5 minutes', windowSeconds: 300, bucketSeconds: 1, refreshSeconds: 10 },
  '15min': { words: '15 minutes', windowSeconds: 900, bucketSeconds: 60, refreshSeconds: 30 },
  '1hr': { words: 'hour', windowSeconds: 3600, bucketSeconds: 60, refreshSeconds: 60 },
  '1day': { words: 'day', windowSeconds: 86_400, bucketSeconds: 3600, refreshSeconds: 300 },
  '7day': { words: '7 days', windowSeconds: 604_800, bucketSeconds: 86_400, refreshSeconds: 300 },
};
const LABELS = ['5 min', '15 min', '1 hour', '1 day', '7 days'];
const DEFAULT = '1day';

export const functionsView: ViewKind = {
  name: 'functions',
  title: 'Functions',
  endpoint: 'functions.invocation-stats',
  defaults: { interval: DEFAULT },
  open: openFunctions,
};

function openFunctions(context: ViewContext): View {
  const { change } = context;
  const interval = makeSegmented(
    'Interval',
    Object.entries(INTERVALS).map(([value, { words }], i) => ({
      value,
      label: LABELS[i] ?? value,
      title: `The last ${words}`,
    })),
    value => change({ interval: value }),
  );
  const functionId = makeTextField('Function id', { placeholder: 'all functions', mono: true }, value =>
    change({ function: value.trim() }),
  );
  const counts = new TimeChart('Invocations', {
    label: 'Invocations and errors over time, stacked bars',
    shape: 'stacked-bars',
    format: formatCount,
    formatAxis: formatCompact,
    whole: true,
  });
  const times = new TimeChart('Execution time', {
    label: 'Execution times over time, lines in milliseconds',
    shape: 'lines',
    format: formatMilliseconds,
    formatAxis: formatMilliseconds,
    whole: false,
  });
  const table = new TableBehind('All values as a table');
  let shown: Interval = INTERVALS[DEFAULT] as Interval;
  const panel = new Panel({
    content: h('div', { class: 'stack' }, counts.element, times.element, table.element),
    draw: answer => {
      drawCharts(answer, shown, counts, times);
      table.draw(() => drawTable(answer.rows));
    },
    markFault: param => functionId.setFault(param === 'function_id'),
    context,
  });
  return {
    element: h(
      'div',
      { class: 'view' },
      h('div', { class: 'controls' }, interval.element, functionId.element),
      panel.element,
    ),
    show(place) {
      const asked = place.settings['interval'] ?? DEFAULT;
      const chosen = Object.hasOwn(INTERVALS, asked) ? asked : DEFAULT; // as the API has it
      shown = INTERVALS[chosen] as Interval;
      interval.set(chosen);
      functionId.set(place.settings['function'] ?? '');
      if (place.project === '') panel.askForProject();
      else panel.ask(toQuestion(place, chosen, shown));
    },
    close() {
      panel.close();
      counts.close();
      times.close();
    },
  };
}

function toQuestion(
  { project, settings }: Place,
  interval: string,
  { words, ...window }: Interval,
): Question {
  const functionId = settings['function'] ?? '';
  const of = functionId === '' ? project : `${functionId} of ${project}`;
  return {
    endpoint: functionsView.endpoint,
    parameters: () => ({ project, function_id: functionId, interval }),
    windowSeconds: window.windowSeconds,
    refreshSeconds: window.refreshSeconds,
    empty: {
      title: `No invocations of ${of} in the last ${words}`,
      hints: functionId === '' ? [] : ['the function id may be misspelt: it must match exactly.'],
      log: 'function log',
      windowSeconds: window.windowSeconds,
    },
  };
}

function drawCharts({ rows, askedAt }: Answer, window: Window, counts: TimeChart, times: TimeChart): void {
  const byStart = new Map(rows.map(row => [Number(row['timestamp']) / 1e6, row]));
  const starts = bucketStarts(window, askedAt, [...byStart.keys()]);
  const found = starts.map(start => byStart.get(start));
  // The first bucket is whole: the window is widened to its start.
  const common = { starts, bucketSeconds: window.bucketSeconds, countedFrom: 0, countedTo: askedAt };
  const series = COUNT_SERIES.map(one => ({ ...one, values: found.map(row => (row ? one.read(row) : 0)) }));
  counts.draw({ ...common, series }, countEntries(rows));
  const timeSeries = TIME_SERIES.map(one => ({
    ...one,
    values: found.map(row => (row?.[one.key] ?? null) as number | null),
  }));
  times.draw({ ...common, series: timeSeries }, timeEntries(rows));
}

function drawTable(rows: readonly Row[]): HTMLElement {
  const numbers = ['count', 'error_count', ...TIME_SERIES.map(({ key }) => key)];
  const headings = ['Invocations', 'Errors', ...TIME_SERIES.map(({ label }) => `${label} (ms)`)];
  return makeTable(
    'Invocations, errors and execution times by bucket; buckets without invocations are left out',
    [{ heading: 'Bucket start' }, ...headings.map(heading => ({ heading, numeric: true }))],
    rows.map(row => [timeCell(Number(row['timestamp'])), ...numbers.map(key => numberCell(row[key]))]),
  );
}
