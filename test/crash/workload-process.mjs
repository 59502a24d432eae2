// A process that runs the workload of the crash simulator. Usage: node workload-process.mjs FILE, with the options in a JSON file.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadTypeScript } from '../support/load-typescript.mjs';

const { runWorkload } = await loadTypeScript(join(import.meta.dirname, 'workload.ts'));
// The timers of the server do not keep its process alive.
const keepAlive = setInterval(() => {}, 60_000);
await runWorkload(JSON.parse(readFileSync(process.argv[2], 'utf8')));
clearInterval(keepAlive);
process.exit();
