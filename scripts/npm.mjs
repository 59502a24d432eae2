// Runs npm for the long tests. npm sometimes fails with an internal error while the registry is slow, so it gets a second attempt.
import { spawnSync } from 'node:child_process';

/** Runs `npm <args>` in `directory`. Returns its standard error, and throws with its output if it fails twice. */
export function runNpm(args, directory) {
  const run = () =>
    spawnSync('npm', [...args, '--no-audit', '--no-fund'], { cwd: directory, encoding: 'utf8' });
  let result = run();
  if (result.status !== 0) result = run();
  if (result.status !== 0) throw new Error(`npm ${args.join(' ')} failed:\n${result.stdout}${result.stderr}`);
  return result.stderr;
}
