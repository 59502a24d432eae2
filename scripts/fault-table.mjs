// The fault table of docs/reliability.md: its rows in order, and how the reports of the fault tests become rows.
import { readFileSync } from 'node:fs';

/** Every row of the table. A test that reports another name fails. */
export const FAULTS = [
  'kill -9 under mixed load',
  'kill -9 during `dendro migrate`',
  'kill -9 during an upgrade',
  'SIGTERM under load',
  'power cut',
  'disk error in any file operation',
  'full disk during intake',
  'full disk during flush and retention',
  'full disk during compaction',
  'full disk while a part is written',
  'full disk during a command',
  'failed fsync',
  'damaged files',
  'slow disk',
  'overload',
  'clients that vanish',
  '2,000 idle connections',
  'clock steps',
  'SIGSTOP',
  'memory limit',
  'few file descriptors',
  'two processes on one data directory',
  'soak',
  'a query that ignores its cancellation',
  'malformed requests',
];

/** Reads the reports of a run: one JSON object per line. */
export function readReports(file) {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line));
}

/** One row per fault, in the order of FAULTS. Several reports of one fault are added up. */
export function toRows(reports) {
  return FAULTS.map(fault => {
    const own = reports.filter(report => report.fault === fault);
    const sum = key => own.reduce((total, report) => total + report[key], 0);
    return {
      fault,
      runs: sum('runs'),
      outcome: joinOutcomes(own),
      lost: sum('lost'),
      duplicated: sum('duplicated'),
    };
  });
}

/** Equal outcomes are one. Different ones are listed with the number of their runs. */
function joinOutcomes(reports) {
  const runsByOutcome = new Map();
  for (const { outcome, runs } of reports)
    runsByOutcome.set(outcome, (runsByOutcome.get(outcome) ?? 0) + runs);
  if (runsByOutcome.size === 0) return 'not run';
  if (runsByOutcome.size === 1) return [...runsByOutcome.keys()][0];
  return [...runsByOutcome].map(([outcome, runs]) => `${runs} ×: ${outcome}`).join('; ');
}

const NUMBER = new Intl.NumberFormat('en-US');

export function formatTable(rows) {
  const lines = rows.map(({ fault, runs, outcome, lost, duplicated }) => {
    const counts = runs === 0 ? ['–', '–'] : [NUMBER.format(lost), NUMBER.format(duplicated)];
    return `| ${[fault, NUMBER.format(runs), outcome.replaceAll('|', '\\|'), ...counts].join(' | ')} |`;
  });
  return ['| fault | runs | outcome | lost | duplicated |', '|---|--:|---|--:|--:|', ...lines, ''].join('\n');
}

const START = '<!-- fault table: npm run test:faults -- --write -->\n';
const END = '<!-- end of the fault table -->\n';

/** Returns the page with the text between its two marks replaced. */
export function replaceTable(page, text) {
  const [start, end] = [page.indexOf(START), page.indexOf(END)];
  if (start < 0 || end < start) throw new Error('the page has no marks of the fault table');
  return `${page.slice(0, start + START.length)}\n${text}\n${page.slice(end)}`;
}
