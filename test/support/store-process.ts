// Starts store-process.mjs, hears what it prints, and sees to its end.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const SCRIPT = join(import.meta.dirname, 'store-process.mjs');

/** Past this a process is taken to be stuck. No task takes more than a few seconds, on a slow machine neither. */
const STUCK_MS = 25_000;

export interface StoreProcess {
  readonly pid: number | undefined;
  /** The one line that it prints, or `stuck`. */
  readonly said: Promise<Record<string, unknown> | 'stuck'>;
  /** Ends it as a crash would, without a chance to tidy up. */
  kill(): Promise<void>;
}

export function startStoreProcess(task: string, dataDirectory: string): StoreProcess {
  const child = spawn(process.execPath, [SCRIPT, task, dataDirectory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  return {
    pid: child.pid,
    said: hear(child),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** What a process says that comes to an end by itself. */
export async function runStoreProcess(task: string, dataDirectory: string) {
  const started = startStoreProcess(task, dataDirectory);
  const said = await started.said;
  await started.kill();
  return said;
}

function hear(child: ChildProcess): Promise<Record<string, unknown> | 'stuck'> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => resolve('stuck'), STUCK_MS);
    child.once('exit', code => {
      clearTimeout(limit);
      reject(new Error(`the process said nothing and ended with ${code}`));
    });
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).once('line', line => {
      clearTimeout(limit);
      resolve(JSON.parse(line));
    });
  });
}
