// Runs store-process.mjs and reads its output.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const SCRIPT = join(import.meta.dirname, 'store-process.mjs');

/** No task takes more than a few seconds, even on a slow machine. */
const STUCK_MS = 25_000;

/** Returns the line that the task prints, or `stuck`. With `maxDescriptors`, the process may open only so many files. */
export async function runStoreProcess(
  task: string,
  dataDirectory: string,
  maxDescriptors?: number,
): Promise<Record<string, unknown> | 'stuck'> {
  const limit = maxDescriptors === undefined ? '' : `ulimit -n ${maxDescriptors} && `;
  const command = [process.execPath, SCRIPT, task, dataDirectory];
  const child = spawn('sh', ['-c', `${limit}exec "$@"`, 'sh', ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), STUCK_MS);
  let line: string | undefined;
  for await (const text of createInterface({ input: child.stdout })) line ??= text;
  clearTimeout(timer);
  const [code, signal] = await exited;
  if (line !== undefined) return JSON.parse(line);
  if (signal === 'SIGKILL') return 'stuck';
  throw new Error(`the process exited with ${code} and printed nothing`);
}
