// The results file of a full run: machine, commit, commands, and every sample.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, platform, totalmem } from 'node:os';
import { basename, dirname, join } from 'node:path';

/** @import { Results } from '../types.ts' */

const root = join(import.meta.dirname, '..', '..');

/** Above this load average before the run, other programs disturb the figures. */
export const BUSY_LOAD = 0.5;

export function describeMachine() {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    arch: arch(),
    system: platform(),
    node: process.version,
  };
}

/** The short commit id, with `-changed` when the working tree differs from it. */
export function describeCommit() {
  const commit = runGit('rev-parse', '--short', 'HEAD') ?? 'no-commit';
  return runGit('--no-optional-locks', 'status', '--porcelain') ? `${commit}-changed` : commit;
}

/** @param {string[]} args */
function runGit(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** The path of the results file relative to the repository. @param {Pick<Results, 'date' | 'commit'>} results */
export function resultsPath({ date, commit }) {
  return join('bench', 'results', `${date.slice(0, 10)}-${commit}.json`);
}

/**
 * @param {string} file
 * @returns {Results}
 */
export function readResults(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/**
 * Writes the file atomically and returns its path. Removes the results of earlier runs: they are in the Git history.
 * @param {Results} results
 */
export function writeResults(results) {
  const path = resultsPath(results);
  const file = join(root, path);
  const directory = dirname(file);
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${file}.tmp`, formatJson(results));
  renameSync(`${file}.tmp`, file);
  for (const name of readdirSync(directory))
    if (name.endsWith('.json') && name !== basename(file)) rmSync(join(directory, name));
  return path;
}

/**
 * Indented JSON in which every array of numbers is on one line: a series of samples is one line of a diff.
 * @param {unknown} value
 */
export function formatJson(value) {
  // Text inside JSON strings never matches, because a line break in a string is written as \n.
  const series = /\[\n\s*(-?\d[^[\]{}"]*)\n\s*\]/g;
  return `${JSON.stringify(value, undefined, 1).replace(series, (_, numbers) => `[${numbers.replace(/\s+/g, '')}]`)}\n`;
}
