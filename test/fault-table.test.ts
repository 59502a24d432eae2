// The fault table: how reports become rows, and whether docs/reliability.md has a row for every fault.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FAULTS, formatTable, replaceTable, toRows } from '../scripts/fault-table.mjs';

const report = (fault: string, outcome: string, counts: Partial<Record<'runs' | 'lost', number>> = {}) => ({
  fault,
  outcome,
  runs: 1,
  lost: 0,
  duplicated: 0,
  ...counts,
});
const rowOf = (fault: string, ...reports: ReturnType<typeof report>[]) =>
  toRows(reports).find(row => row.fault === fault);

test('reports of one fault are added up, and different outcomes are listed with their runs', () => {
  const reports = [report('SIGSTOP', 'waits', { runs: 2 }), report('SIGSTOP', 'exits', { lost: 3 })];
  expect(rowOf('SIGSTOP', ...reports, report('soak', 'steady'))).toEqual({
    fault: 'SIGSTOP',
    runs: 3,
    outcome: '2 ×: waits; 1 ×: exits',
    lost: 3,
    duplicated: 0,
  });
  expect(rowOf('soak', report('soak', 'steady'), report('soak', 'steady'))?.outcome).toBe('steady');
});

test('a fault without a report is shown as not run', () => {
  expect(formatTable([rowOf('SIGSTOP') ?? report('', '')])).toContain('| SIGSTOP | 0 | not run | – | – |');
});

test('docs/reliability.md has a row for every fault in order, with its date, and no lost or duplicated record', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/reliability.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (.+) \| ([\d,]+) \| .+ \| (\S+) \| (\S+) \|$/gm)];
  expect(rows.map(([, fault]) => fault)).toEqual(FAULTS);
  for (const [, fault, runs, lost, duplicated] of rows)
    expect([fault, lost, duplicated]).toEqual([fault, ...(runs === '0' ? ['–', '–'] : ['0', '0'])]);
  expect(page).toMatch(/^Run on \d{4}-\d\d-\d\d with `npm run test:faults/m);
  expect(replaceTable(page, 'new')).not.toContain('| SIGSTOP |');
});
