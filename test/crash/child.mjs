// A process of the crash simulator. Usage: node child.mjs workload FILE runs the workload with the options in a JSON file;
// node child.mjs check checks the states that the parent process sends.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadTypeScript } from './load-typescript.mjs';

const [task, file] = process.argv.slice(2);
const load = name => loadTypeScript(join(import.meta.dirname, name));

if (task === 'workload') {
  const { runWorkload } = await load('workload.ts');
  await runWorkload(JSON.parse(readFileSync(file, 'utf8')));
  process.exit();
}

const { checkState } = await load('check-state.ts');
process.on('message', async request => process.send(await checkState(request)));
process.on('disconnect', () => process.exit());
process.send('ready');
