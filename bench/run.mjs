// npm run bench: measures, prints tables and what was reached, and leaves a file with the raw numbers, the plots and the
// figures in BENCHMARKS.md, which says what they mean. --quick shows in about a minute that everything runs, and leaves
// nothing. Names of parts run those alone, and leave nothing either.
import { loadavg } from 'node:os';
import { PARTS } from './parts/index.mjs';
import { writeDocument } from './report/document.mjs';
import { judgeGoals } from './report/goals.mjs';
import { BUSY_LOAD, describeCommit, describeMachine, writeResults } from './report/results.mjs';
import { formatTable, goalsTable, makeProgress } from './report/table.mjs';
import { SIZES } from './sizes.mjs';
import { openStage } from './stage.mjs';
import { openWorkplace } from './tools/workplace.mjs';

const names = PARTS.map(({ name }) => name);
const wanted = process.argv.slice(2).filter(argument => argument !== '--quick');
const unknown = wanted.find(name => !names.includes(name));
if (unknown !== undefined) {
  process.stderr.write(`${unknown} is not known; there are --quick and the parts ${names.join(', ')}\n`);
  process.exit(2);
}
const isQuick = process.argv.includes('--quick');
const chosen = PARTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const sizes = isQuick ? SIZES.quick : SIZES.full;
const machine = describeMachine();
const loadBefore = loadavg()[0];
const commit = describeCommit();
const start = performance.now();

print(`${machine.cores} cores (${machine.cpu}), ${machine.arch}, Node ${machine.node}, commit ${commit}`);
if (loadBefore > BUSY_LOAD)
  print(`the machine is busy already (load ${loadBefore.toFixed(2)}): expect noise`);

const workplace = openWorkplace();
const progress = makeProgress(process.stderr);
const parts = {};
try {
  const stage = openStage(workplace, sizes);
  for (const [index, part] of chosen.entries()) parts[part.name] = await runPart(stage, part, index);
} finally {
  workplace.clear();
}

print(formatTable(goalsTable(judgeGoals(parts))));
for (const line of [...listMissing(), ...listFaults()]) print(line);
const seconds = Math.round((performance.now() - start) / 1000);
if (isQuick || wanted.length > 0)
  print('Not the whole of it: nothing is kept. npm run bench keeps its figures.');
else {
  const results = {
    date: new Date().toISOString(),
    commit,
    command: 'npm run bench',
    seconds,
    machine,
    loadBefore,
    parts,
  };
  print(`raw numbers: ${writeResults(results)}`);
  print(`figures: ${writeDocument(results).join(', ')}`);
}
print(`took ${seconds} s`);
if (listFaults().length > 0) process.exitCode = 1;

/** A part that fails costs no other its figures. */
async function runPart(stage, { name, measure, tables }, index) {
  const place = `part ${index + 1} of ${chosen.length}, ${name}`;
  try {
    const result = await measure(stage, sizes[name], text =>
      progress.report(`${place}, ${Math.round((performance.now() - start) / 1000)} s: ${text}`),
    );
    progress.end();
    if (result.leftOut === undefined) for (const table of tables(result)) print(formatTable(table));
    return result;
  } catch (error) {
    progress.end();
    print(`${place} failed: ${error.stack}`);
    return { failed: error.message };
  }
}

/** Nothing that is missing goes without saying; what was not to be had here is no fault. */
function listMissing() {
  return Object.entries(parts)
    .filter(([, { leftOut }]) => leftOut !== undefined)
    .map(([name, { leftOut }]) => `${name} was left out: ${leftOut}`);
}

function listFaults() {
  return Object.entries(parts).flatMap(([name, { failed, faults = [] }]) => [
    ...(failed === undefined ? [] : [`${name} failed: ${failed}`]),
    ...faults.map(
      ({ system, call = 'all', reason }) => `${name}: ${system} was left out of ${call}: ${reason}`,
    ),
  ]);
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
