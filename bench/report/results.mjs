// The file that a full run leaves: machine, commands and raw numbers, under its date and commit.
import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** A machine with more to do before the run disturbs what is measured. */
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

/** The commit that was measured; `-changed` where the working tree differs from it. */
export function describeCommit() {
  const commit = git('rev-parse', '--short', 'HEAD') ?? 'no-commit';
  return git('--no-optional-locks', 'status', '--porcelain') ? `${commit}-changed` : commit;
}

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** The file's path inside the project. */
export function resultName({ date, commit }) {
  return join('bench', 'results', `${date.slice(0, 10)}-${commit}.json`);
}

/** Answers the file's path. A run that is broken off leaves no half a file under that name. */
export function writeResults(results) {
  const name = resultName(results);
  const file = join(root, name);
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(`${file}.tmp`, `${JSON.stringify(results, undefined, 1)}\n`);
  renameSync(`${file}.tmp`, file);
  return name;
}
