// Locks directories from a separate process, straight from the sources. All such processes try each directory at the same time.
// Usage: node lock-process.mjs DIRECTORY…; prints "ready", reads the time of the first attempt (Unix ms) from standard input,
// and prints the indexes of the directories that it locked, and the errors of the others. It holds the locks until standard input
// ends.
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { runnerImport } from 'vite';

const INTERVAL_MS = 60;

const directories = process.argv.slice(2);
const file = join(import.meta.dirname, '../../src/system/lock.ts');
const { lockDirectory } = (await runnerImport(file, { configFile: false, logLevel: 'error' })).module;

const print = value => process.stdout.write(`${JSON.stringify(value)}\n`);
const input = createInterface({ input: process.stdin });
print('ready');
const [line] = await new Promise(resolve => input.once('line', text => resolve([text])));
const locked = [];
const errors = [];
for (const [index, directory] of directories.entries()) {
  while (Date.now() < Number(line) + index * INTERVAL_MS); // busy wait, exact to the millisecond
  await lockDirectory(directory).then(
    () => locked.push(index),
    error => errors.push(error.message),
  );
}
print({ locked, errors });
