// `npm run test:faults`: runs the fault tests and prints the fault table. Takes about an hour.
//   --quick        the size that `npm run test:full` runs: fewer and shorter runs, about seven minutes
//   --write        also writes the table to docs/reliability.md, unless a test failed
//   other values   select test files by a part of their name, such as `kill`
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatTable, readReports, replaceTable, toRows } from './fault-table.mjs';

const root = join(import.meta.dirname, '..');
const page = join(root, 'docs', 'reliability.md');

const { values, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } },
});
if (values.write && filters.length > 0) {
  process.stderr.write('--write needs all fault tests; remove the names of files\n');
  process.exit(2);
}

const directory = mkdtempSync(join(tmpdir(), 'dendro-fault-table-'));
const reportsFile = join(directory, 'reports.ndjson');
writeFileSync(reportsFile, '');
const env = {
  ...process.env,
  DENDRO_FAULT_REPORTS: reportsFile,
  DENDRO_FAULT_SIZE: values.quick ? 'quick' : 'full',
};

const start = performance.now();
let hasFailed = !(await runTests('faults', filters));
// In the quick size, ClickHouse is another step of `npm run test:full`.
if (!values.quick && filters.length === 0)
  hasFailed = !(await runTests('clickhouse', ['test/clickhouse/kill-migration.test.ts'])) || hasFailed;
const minutes = ((performance.now() - start) / 60_000).toFixed(1);

const rows = toRows(readReports(reportsFile)).filter(({ runs }) => runs > 0 || filters.length === 0);
// A second check: a test that reports a loss also fails itself.
if (rows.some(({ lost, duplicated }) => lost > 0 || duplicated > 0)) hasFailed = true;
rmSync(directory, { recursive: true });
const table = formatTable(rows);
process.stdout.write(`\n${table}\n${hasFailed ? 'FAILED' : 'passed'} after ${minutes} minutes\n`);
if (values.write && !hasFailed) writePage();
process.exitCode = hasFailed ? 1 : 0;

function writePage() {
  const command = `npm run test:faults -- --write${values.quick ? ' --quick' : ''}`;
  const size = values.quick ? 'the quick size' : 'the full size';
  const date = new Date().toISOString().slice(0, 10);
  const caption = `Run on ${date} with \`${command}\` (${size}, ${minutes} minutes):`;
  writeFileSync(page, replaceTable(readFileSync(page, 'utf8'), `${caption}\n\n${table}`));
  process.stdout.write('wrote docs/reliability.md\n');
}

/** Prints the progress of the tests. Returns whether all of them passed. */
function runTests(project, files) {
  const reporters = ['--reporter=verbose', '--reporter=./scripts/failed-tests-reporter.mjs'];
  const args = ['vitest', 'run', '--project', project, ...reporters, ...files];
  const child = spawn('npx', args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  return new Promise(resolve => {
    child.once('error', () => resolve(false));
    child.once('close', code => resolve(code === 0));
  });
}
