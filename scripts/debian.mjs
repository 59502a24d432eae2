// Programs that benchmarks and the long tests need and npm does not have: taken from Debian's packages where this
// process may install them, otherwise named in one line.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

let listsAreFresh = false;

/**
 * Sees to it that programs are there. Takes the package or packages of each program, such as `{ wrk: ['wrk'] }`, and
 * answers the programs that are still missing, after saying on standard error how to get them.
 */
export function ensurePrograms(packageOf) {
  const missing = missingAmong(packageOf);
  if (missing.length === 0) return [];
  const packages = [...new Set(missing.flatMap(program => packageOf[program]))];
  const fault = mayInstall() ? install(packages) : 'installing needs root and apt-get';
  const stillMissing = missingAmong(packageOf);
  if (stillMissing.length > 0)
    process.stderr.write(
      `missing: ${stillMissing.join(', ')} (${fault ?? 'the packages do not bring them'}); ` +
        `on Debian: sudo apt-get install ${packages.join(' ')}\n`,
    );
  return stillMissing;
}

/** The file that a program's name runs, or undefined. */
export function findProgram(name) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter(folder => folder !== '')
    .map(folder => join(folder, name))
    .find(isExecutable);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function missingAmong(packageOf) {
  return Object.keys(packageOf).filter(program => findProgram(program) === undefined);
}

function mayInstall() {
  return process.getuid?.() === 0 && findProgram('apt-get') !== undefined;
}

/** What went wrong, in a few words, or undefined. */
function install(packages) {
  process.stderr.write(`installing Debian packages: ${packages.join(' ')}\n`);
  if (!listsAreFresh) {
    if (!aptGet('update')) return 'apt-get update failed';
    listsAreFresh = true;
  }
  return aptGet('install', '-y', '--no-install-recommends', ...packages)
    ? undefined
    : 'apt-get install failed';
}

/** Quiet unless it fails. Waits a while where another apt-get is at work. */
function aptGet(...args) {
  const { status, stdout, stderr } = spawnSync('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=120', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  return status === 0;
}
