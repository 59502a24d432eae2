// Runs the tests that `npm test` does not run, because they take minutes or need programs that npm does not install: slow tests,
// faults (kill -9, a full disk, thousands of malformed requests), the crash simulator, log shippers, packages, Prometheus, the
// console in a browser and ClickHouse. Then runs the unit tests on Node 24. Runs every step, even after a failure. The exit code
// is 1 if a step failed.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { installNode } from './install-node.mjs';

const root = join(import.meta.dirname, '..');

const NODE_24 = '24.21.0';
/** For each step, because vitest cannot stop a test that is in an endless loop. */
const TIMEOUT_MINUTES = 30;
const REPORTERS = ['--reporter=default', '--reporter=./scripts/failed-tests-reporter.mjs'];
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const steps = [
  { title: 'build', run: () => run('npm', ['run', 'build']) },
  { title: 'slow tests', run: () => runProject('slow') },
  { title: 'faults', run: () => run('node', [join('scripts', 'test-faults.mjs'), '--quick']) },
  { title: 'crash simulator, fixed seed', run: () => simulateCrashes(['--seed', '1']) },
  { title: 'crash simulator, random seed', run: () => simulateCrashes([]) },
  { title: 'log shippers', run: () => runProject('shippers') },
  { title: 'packages', run: () => runProject('packaging') },
  { title: 'metrics with Prometheus', run: () => runProject('operations') },
  {
    title: 'console in a browser',
    run: () => run('node', [join('scripts', 'test-browser.mjs'), ...REPORTERS]),
  },
  { title: 'ClickHouse', run: () => runProject('clickhouse') },
  { title: 'ClickHouse, endpoints', run: () => runProject('clickhouse-endpoints') },
  { title: 'ClickHouse, explore pack', run: () => runProject('clickhouse-search') },
  { title: `unit tests on Node ${NODE_24}`, run: testOnNode24 },
];

const directory = mkdtempSync(join(tmpdir(), 'dendro-test-full-'));
const failedTestsFile = join(directory, 'failed-tests.txt');
process.env.DENDRO_FAILED_TESTS = failedTestsFile; // the steps inherit it

const outcomes = [];
let failedTests = '';
for (const { title, run: runStep } of steps) {
  process.stdout.write(`\n== ${title}\n`);
  writeFileSync(failedTestsFile, '');
  const start = performance.now();
  const outcome = await runStep();
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  outcomes.push({ title, outcome, seconds });
  const failedInStep = readFileSync(failedTestsFile, 'utf8');
  process.stdout.write(`${outcome} after ${seconds} s: ${title}\n${failedInStep}`);
  failedTests += failedInStep;
}
process.stdout.write(`\n${failedTests}\n`);
rmSync(directory, { recursive: true });
for (const { title, outcome, seconds } of outcomes)
  process.stdout.write(`${outcome.padEnd(8)} ${seconds.padStart(7)} s  ${title}\n`);
if (outcomes.some(({ outcome }) => outcome === 'failed')) process.exitCode = 1;

async function testOnNode24() {
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) {
    const platform = `${process.platform}-${process.arch}`;
    process.stdout.write(`no package of Node ${NODE_24} for ${platform}; run the unit tests by hand\n`);
    return 'skipped';
  }
  const node = installNode(process.arch, NODE_24);
  if (node === undefined) return 'failed';
  // Tests start the program with the Node that runs them; PATH provides the same Node to programs that start `node`.
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  return run(
    node,
    [join('node_modules', 'vitest', 'vitest.mjs'), 'run', '--project', 'unit', ...REPORTERS],
    env,
  );
}

function simulateCrashes(seed) {
  return run('node', [join('test', 'crash', 'run.mjs'), '--minutes', '1.25', ...seed]);
}

function runProject(name) {
  return run('npx', ['vitest', 'run', '--project', name, ...REPORTERS]);
}

/** Runs a command in its own process group, so that a timeout also ends the processes that it started. */
function run(program, args, env = process.env) {
  process.stdout.write(`$ ${[program, ...args].join(' ').replaceAll(`${root}/`, '')}\n`);
  const child = spawn(program, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  const killGroup = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // the group has already ended
    }
  };
  const timeout = setTimeout(() => {
    process.stdout.write(`timed out after ${TIMEOUT_MINUTES} minutes\n`);
    killGroup();
  }, TIMEOUT_MINUTES * 60_000);
  const onSignal = () => {
    killGroup();
    process.exit(1);
  };
  for (const signal of SIGNALS) process.once(signal, onSignal);
  return new Promise(resolve => {
    child.once('error', error => {
      process.stdout.write(`${error.message}\n`);
      resolve('failed');
    });
    child.once('exit', code => resolve(code === 0 ? 'passed' : 'failed'));
  }).finally(() => {
    clearTimeout(timeout);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  });
}
