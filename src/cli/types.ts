// dendro types: prints TypeScript that adds the endpoints of a running server to those that dendro/client has types for.
import { BUILT_IN_ENDPOINTS, type Invocation } from '../config.ts';
import { loadDefinitions } from '../endpoint/catalog.ts';
import { generateTypes } from './endpoint-types.ts';
import { requireRunningServer } from './running-server.ts';
import { requireEndpoints } from './server-catalog.ts';

export async function types(invocation: Invocation): Promise<void> {
  const server = requireRunningServer(invocation);
  const endpoints = await requireEndpoints(server, { maxAttempts: 5, retryUnreachable: false });
  const builtIn = loadDefinitions({ builtIn: BUILT_IN_ENDPOINTS, custom: undefined }).map(({ name }) => name);
  const custom = endpoints.filter(({ name }) => !builtIn.includes(name));
  process.stdout.write(generateTypes(custom, server.url));
}
