// Formats an explanation for a terminal: one line per fact, then the summary.
import type { Explanation } from '../endpoint/explain.ts';
import { escapeForTerminal } from './terminal.ts';

export function formatExplanation(explanation: Explanation): string {
  const { parameters, window, newest, oldest, conditions, summary } = explanation;
  const facts: [label: string, value: string | null][] = [
    ...Object.entries(parameters).map(([name, value]): [string, string | null] => [
      `parameter ${name}`,
      value,
    ]),
    ['window start', window.start],
    ['window end', window.end],
    ['newest record', newest],
    ['oldest record', oldest],
    ...conditions.map(({ name, remaining }): [string, string] => [
      `after ${name}`,
      `${remaining} ${remaining === 1 ? 'record' : 'records'}`,
    ]),
  ];
  const width = Math.max(...facts.map(([label]) => label.length));
  const lines = facts.map(([label, value]) => `${label.padEnd(width)}  ${escapeForTerminal(value ?? '-')}`);
  return [...lines, escapeForTerminal(summary), ''].join('\n');
}
