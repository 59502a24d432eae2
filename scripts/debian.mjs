// Installs programs that benchmarks and long tests need, from Debian packages. If that fails, prints the command that installs
// them.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';

let isPackageListUpdated = false;

/**
 * Installs missing programs. `packagesByProgram` maps each program to its package or packages, such as
 * `{ wrk: ['wrk'] }`. A program is a name in PATH or the absolute path of a file. Prints how to install the programs that
 * are still missing, and returns them. `update` reads the package lists again, which is needed after an architecture was added.
 */
export function ensurePrograms(packagesByProgram, { update = false } = {}) {
  if (update) isPackageListUpdated = false;
  const missing = findMissing(packagesByProgram);
  if (missing.length === 0) return [];
  const packages = [...new Set(missing.flatMap(program => packagesByProgram[program]))];
  const problem = canInstall() ? install(packages) : 'installing packages needs root and apt-get';
  const stillMissing = findMissing(packagesByProgram);
  if (stillMissing.length > 0)
    process.stderr.write(
      `missing programs: ${stillMissing.join(', ')} (${problem ?? 'the packages do not contain them'}); ` +
        `on Debian: sudo apt-get install ${packages.join(' ')}\n`,
    );
  return stillMissing;
}

/** Returns the path of a program, or undefined if it is not in PATH. */
export function findProgram(name) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter(directory => directory !== '')
    .map(directory => join(directory, name))
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

function findMissing(packagesByProgram) {
  return Object.keys(packagesByProgram).filter(program =>
    isAbsolute(program) ? !existsSync(program) : findProgram(program) === undefined,
  );
}

function canInstall() {
  return process.getuid?.() === 0 && findProgram('apt-get') !== undefined;
}

/** Returns a short description of the problem, or undefined. */
function install(packages) {
  process.stderr.write(`installing Debian packages: ${packages.join(' ')}\n`);
  if (!isPackageListUpdated) {
    if (!aptGet('update')) return 'apt-get update failed';
    isPackageListUpdated = true;
  }
  return aptGet('install', '-y', '--no-install-recommends', ...packages)
    ? undefined
    : 'apt-get install failed';
}

/**
 * Prints the output only if the command fails. Waits for the apt-get of another step of the tests (flock: `update` does not wait
 * by itself), and up to 120 s for any other.
 */
function aptGet(...args) {
  const apt = ['apt-get', '-q', '-o', 'DPkg::Lock::Timeout=120', ...args];
  const { status, stdout, stderr } = spawnSync('flock', [join(tmpdir(), 'dendro-apt.lock'), ...apt], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  return status === 0;
}

/**
 * Unpacks a Debian package into a directory without installing it, so that nothing is started. Returns what is wrong, or
 * undefined.
 */
export function unpackPackage(name, directory) {
  mkdirSync(directory, { recursive: true });
  if (canInstall() && !isPackageListUpdated) isPackageListUpdated = aptGet('update');
  const download = spawnSync('apt-get', ['-q', 'download', name], { cwd: directory, encoding: 'utf8' });
  if (download.status !== 0)
    return `apt-get download ${name} failed: ${download.stderr ?? download.error?.message}`;
  const archive = readdirSync(directory).find(file => file.startsWith(`${name}_`) && file.endsWith('.deb'));
  const unpack = spawnSync('dpkg-deb', ['-x', `${archive}`, '.'], { cwd: directory, encoding: 'utf8' });
  return unpack.status === 0 ? undefined : `dpkg-deb -x ${archive} failed: ${unpack.stderr}`;
}
