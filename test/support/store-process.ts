// Starts store-process.mjs, reads its output and kills it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const SCRIPT = join(import.meta.dirname, 'store-process.mjs');

/** No task takes more than a few seconds, even on a slow machine. */
const STUCK_MS = 25_000;

export interface StoreProcess {
  readonly pid: number | undefined;
  /** The line that it prints, or `stuck`. */
  readonly output: Promise<Record<string, unknown> | 'stuck'>;
  /** Kills the process with SIGKILL and waits until it is gone. */
  kill(): Promise<void>;
}

/** With `maxDescriptors`, the process may open only so many files. */
export function startStoreProcess(
  task: string,
  dataDirectory: string,
  maxDescriptors?: number,
): StoreProcess {
  const limit = maxDescriptors === undefined ? '' : `ulimit -n ${maxDescriptors} && `;
  const command = [process.execPath, SCRIPT, task, dataDirectory];
  const child = spawn('sh', ['-c', `${limit}exec "$@"`, 'sh', ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  return {
    pid: child.pid,
    output: readOutput(child),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Returns the output of a task. */
export async function runStoreProcess(task: string, dataDirectory: string, maxDescriptors?: number) {
  const child = startStoreProcess(task, dataDirectory, maxDescriptors);
  const output = await child.output;
  await child.kill();
  return output;
}

function readOutput(child: ChildProcess): Promise<Record<string, unknown> | 'stuck'> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => resolve('stuck'), STUCK_MS);
    child.once('exit', code => {
      clearTimeout(limit);
      reject(new Error(`the process exited with ${code} and printed nothing`));
    });
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).once('line', line => {
      clearTimeout(limit);
      resolve(JSON.parse(line));
    });
  });
}
