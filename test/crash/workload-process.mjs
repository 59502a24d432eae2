// A process that runs the workload of the crash simulator. Usage: node workload-process.mjs FILE, with the options in a JSON file.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer, createServerModuleRunner } from 'vite';

const server = await createServer({
  configFile: false,
  logLevel: 'error',
  cacheDir: false,
  server: { middlewareMode: true, hmr: false, ws: false, watch: null },
  optimizeDeps: { noDiscovery: true },
});
const runner = createServerModuleRunner(server.environments.ssr, { hmr: false });
const { runWorkload } = await runner.import(join(import.meta.dirname, 'workload.ts'));
// The timers of the server do not keep its process alive.
const keepAlive = setInterval(() => {}, 60_000);
await runWorkload(JSON.parse(readFileSync(process.argv[2], 'utf8')));
clearInterval(keepAlive);
process.exit();
