// `npm run bench`: runs the suites, prints their tables and the regression guard, writes the results file, and updates
// BENCHMARKS.md and its plots. With --quick or with names of suites it writes no files.
import { loadavg } from 'node:os';
import { createContext } from './context.mjs';
import { checkThresholds, guardTable } from './guard.mjs';
import { writeDocument } from './report/document.mjs';
import { BUSY_LOAD, describeCommit, describeMachine, writeResults } from './report/results.mjs';
import { formatTable } from './report/tables.mjs';
import { SIZES } from './sizes.mjs';
import { SUITES } from './suites/index.mjs';
import { openWorkspace } from './tools/workspace.mjs';

/** @import { Context, Fault } from './types.ts' */

/** Figures of the suites that ran, or the reason why there are none. @type {Record<string, any>} */
const suites = {};
const names = process.argv.slice(2).filter(argument => argument !== '--quick');
const isQuick = process.argv.includes('--quick');
const unknown = names.find(name => SUITES.every(suite => suite.name !== name));
if (unknown !== undefined) {
  const known = SUITES.map(({ name }) => name).join(', ');
  process.stderr.write(`unknown suite: ${unknown}; use --quick or names of suites: ${known}\n`);
  process.exit(2);
}
const chosen = SUITES.filter(({ name }) => names.length === 0 || names.includes(name));
const sizes = isQuick ? SIZES.quick : SIZES.full;
const machine = describeMachine();
const loadBefore = loadavg()[0];
const commit = describeCommit();
const start = performance.now();

print(`${machine.cores} cores (${machine.cpu}), ${machine.arch}, Node ${machine.node}, commit ${commit}`);
if (loadBefore > BUSY_LOAD)
  print(`warning: the machine is busy (load average ${loadBefore.toFixed(2)}), so the figures will be noisy`);

const workspace = openWorkspace();
const progress = createProgress();
try {
  const context = createContext(workspace, sizes);
  for (const [index, suite] of chosen.entries()) suites[suite.name] = await runSuite(context, suite, index);
} finally {
  workspace.clear();
}

const problems = listProblems();
for (const line of [...listSkipped(), ...problems]) print(line);
const isPassed = checkGuard();
const seconds = Math.round((performance.now() - start) / 1000);
if (isQuick || names.length > 0) print('no files were written: that needs a full run (npm run bench)');
else {
  const date = new Date().toISOString();
  const results = { date, commit, command: 'npm run bench', seconds, machine, loadBefore, suites };
  print(`wrote ${[writeResults(results), ...writeDocument(results)].join(', ')}`);
}
print(`took ${seconds} s`);
if (problems.length > 0 || !isPassed) process.exitCode = 1;

/**
 * A suite that fails does not stop the others.
 * @param {Context} context @param {import('./suites/index.mjs').Suite} suite @param {number} index
 */
async function runSuite(context, { name, needs, measure, tables }, index) {
  const position = `suite ${index + 1} of ${chosen.length}, ${name}`;
  if (needs !== undefined && context.isMissing[needs]) return { skipped: `${needs} is not installed` };
  try {
    const result = await measure(context, sizes[name], text =>
      progress.report(`${position}, ${Math.round((performance.now() - start) / 1000)} s: ${text}`),
    );
    progress.end();
    for (const table of tables(result)) print(formatTable(table));
    return result;
  } catch (error) {
    progress.end();
    print(`${position} failed: ${error instanceof Error ? error.stack : error}`);
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

/** Prints the guard and returns whether no figure is beyond its threshold. The data sets of --quick are too small for it. */
function checkGuard() {
  if (isQuick) {
    print('the regression guard does not apply to --quick');
    return true;
  }
  const results = checkThresholds(suites);
  print(formatTable(guardTable(results)));
  const failed = results.filter(({ verdict }) => verdict === 'failed').length;
  print(failed === 0 ? 'no figure is beyond its threshold' : `${failed} figures are beyond their thresholds`);
  return failed === 0;
}

/** A program that is not installed is not an error. */
function listSkipped() {
  return Object.entries(suites)
    .filter(([, { skipped }]) => skipped !== undefined)
    .map(([name, { skipped }]) => `${name} was skipped: ${skipped}`);
}

function listProblems() {
  return Object.entries(suites).flatMap(([name, { failed, faults = [] }]) => [
    ...(failed === undefined ? [] : [`${name} failed: ${failed}`]),
    ...faults.map(
      (/** @type {Fault} */ { system, request = 'all requests', reason }) =>
        `${name}: ${system} was excluded from ${request}: ${reason}`,
    ),
  ]);
}

/** One line that is overwritten on a terminal; in a log, one line every 5 s. */
function createProgress() {
  const { stderr } = process;
  let lastMs = 0;
  return {
    /** @param {string} text */
    report(text) {
      if (stderr.isTTY) stderr.write(`\r\x1b[2K${text}`);
      else if (performance.now() - lastMs > 5000) {
        lastMs = performance.now();
        stderr.write(`${text}\n`);
      }
    },
    end() {
      if (stderr.isTTY) stderr.write('\r\x1b[2K');
    },
  };
}

/** @param {string} text */
function print(text) {
  process.stdout.write(`${text}\n`);
}
