// Imports a TypeScript module in a plain Node process, with everything that it imports later. The caller has to end the process.
import { createServer, createServerModuleRunner } from 'vite';

export async function loadTypeScript(file) {
  const server = await createServer({
    configFile: false,
    logLevel: 'error',
    cacheDir: false,
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
    optimizeDeps: { noDiscovery: true },
  });
  return createServerModuleRunner(server.environments.ssr, { hmr: false }).import(file);
}
