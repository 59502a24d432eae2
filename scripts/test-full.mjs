// Runs the tests that `npm test` does not run, because they take minutes or need programs that npm does not install: faults (kill
// -9, a full disk, simulated power cuts), ClickHouse, packages, slow tests, the console in a browser, Prometheus and log shippers,
// and on Node 24 the unit tests that depend on Node. Two steps run at a time; the output of a step is printed when it ends. Runs
// every step, even after a failure. The exit code is 1 if a step failed. Arguments select steps by name.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { installNode } from './install-node.mjs';

const root = join(import.meta.dirname, '..');

const NODE_24 = '24.21.0';
const STEPS_AT_A_TIME = 2;
/** For each command, because vitest cannot stop a test that is in an endless loop. */
const TIMEOUT_MINUTES = 30;
const REPORTERS = ['--reporter=default', '--reporter=./scripts/failed-tests-reporter.mjs'];

const vitest = (...args) => ['npx', 'vitest', 'run', ...REPORTERS, '--project', ...args];

/** The commands of each step. The longest steps come first, so that the last two end at about the same time. */
const steps = {
  faults: [['node', join('scripts', 'test-faults.mjs'), '--quick']],
  clickhouse: [vitest('clickhouse'), vitest('clickhouse-endpoints'), vitest('clickhouse-search')],
  packages: [vitest('packaging')],
  slow: [vitest('slow')],
  browser: [['node', join('scripts', 'test-browser.mjs'), ...REPORTERS]],
  'node-24': [vitest('unit', 'test/store', 'test/intake', 'test/http', 'test/logs', 'test/system')],
  prometheus: [vitest('operations')],
  shippers: [vitest('shippers')],
};

const selected = process.argv.slice(2);
const unknown = selected.filter(name => !(name in steps));
if (unknown.length > 0) {
  process.stderr.write(`unknown step: ${unknown.join(', ')}; known: ${Object.keys(steps).join(', ')}\n`);
  process.exit(2);
}

const directory = mkdtempSync(join(tmpdir(), 'dendro-test-full-'));
const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const pid of running) killGroup(pid);
    process.exit(1);
  });
}

const outcomes = [];
await runStep('build', [['npm', 'run', 'build']]);
const waiting = Object.keys(steps).filter(name => selected.length === 0 || selected.includes(name));
await Promise.all(
  Array.from({ length: STEPS_AT_A_TIME }, async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
      await runStep(name, steps[name]);
  }),
);
rmSync(directory, { recursive: true });
process.stdout.write(`\n${outcomes.map(({ failedTests }) => failedTests).join('')}\n`);
for (const { name, passed, seconds } of outcomes)
  process.stdout.write(`${passed ? 'passed' : 'FAILED'} ${seconds.padStart(7)} s  ${name}\n`);
if (!outcomes.every(({ passed }) => passed)) process.exitCode = 1;

async function runStep(name, commands) {
  process.stdout.write(`== ${name}: started\n`);
  const start = performance.now();
  const failedTestsFile = join(directory, name);
  let output = '';
  let passed = true;
  const env = { ...process.env, DENDRO_FAILED_TESTS: failedTestsFile };
  try {
    // `node` is Node 24, also for the programs that the tests start
    if (name === 'node-24')
      env.PATH = [dirname(installNode(process.arch, NODE_24)), env.PATH].join(delimiter);
  } catch (error) {
    output = `${error.message}\n`;
    passed = false;
  }
  for (const command of passed ? commands : []) {
    const result = await run(command, env);
    output += result.output;
    passed &&= result.passed;
  }
  const failedTests = existsSync(failedTestsFile) ? readFileSync(failedTestsFile, 'utf8') : '';
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  outcomes.push({ name, passed, seconds, failedTests });
  process.stdout.write(
    `${output}${failedTests}== ${name}: ${passed ? 'passed' : 'FAILED'} after ${seconds} s\n`,
  );
}

/** Runs a command in its own process group, so that a timeout also ends the processes that it started. */
function run([program, ...args], env) {
  const child = spawn(program, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child.pid);
  let output = `$ ${[program, ...args].join(' ')}\n`;
  const collect = text => {
    output += text;
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  const timeout = setTimeout(() => {
    collect(`timed out after ${TIMEOUT_MINUTES} minutes\n`);
    killGroup(child.pid);
  }, TIMEOUT_MINUTES * 60_000);
  return new Promise(resolve => {
    child.once('error', error => resolve({ passed: false, output: `${output}${error.message}\n` }));
    child.once('exit', code => setTimeout(() => resolve({ passed: code === 0, output }), 100)); // the last output
  }).finally(() => {
    clearTimeout(timeout);
    running.delete(child.pid);
  });
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // the group has already ended
  }
}
