// A process of the crash simulator. Usage: node child.mjs workload FILE runs the workload with the options in a JSON file;
// node child.mjs check checks the states that the parent process sends.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadTypeScript } from './load-typescript.mjs';

const [task, file] = process.argv.slice(2);
/** On a busy machine a workload takes about a minute. */
const LIMIT_MS = 300_000;
const load = name => loadTypeScript(join(import.meta.dirname, name));

if (task === 'workload') {
  // The timers of the server do not keep its process alive.
  const limit = setTimeout(() => {
    process.stderr.write(`the workload did not finish within ${LIMIT_MS / 1000} s\n`);
    process.exit(1);
  }, LIMIT_MS);
  const { runWorkload } = await load('workload.ts');
  await runWorkload(JSON.parse(readFileSync(file, 'utf8')));
  clearTimeout(limit);
  process.exit();
}

const { checkState } = await load('check-state.ts');
process.on('message', async request => process.send(await checkState(request)));
process.on('disconnect', () => process.exit());
process.send('ready');
