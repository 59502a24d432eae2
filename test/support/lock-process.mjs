// Locks folders in a process of its own, straight from the sources, each at a moment that is the same in all such processes.
// Call: node lock-process.mjs FOLDER…; says that it is ready, reads the first moment (Unix ms) from standard input, and
// prints the numbers of the folders it got. It holds them until standard input ends.
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { runnerImport } from 'vite';

const DISTANCE_MS = 60;

const folders = process.argv.slice(2);
const file = join(import.meta.dirname, '../../src/system/directory-lock.ts');
const { lockDirectory } = (await runnerImport(file, { configFile: false, logLevel: 'error' })).module;

const print = value => process.stdout.write(`${JSON.stringify(value)}\n`);
const input = createInterface({ input: process.stdin });
print('ready');
const [line] = await new Promise(resolve => input.once('line', text => resolve([text])));
const got = [];
for (const [index, folder] of folders.entries()) {
  while (Date.now() < Number(line) + index * DISTANCE_MS); // to the very millisecond
  await lockDirectory(folder).then(
    () => got.push(index),
    () => {},
  );
}
print(got);
