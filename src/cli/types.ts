// dendro types: prints TypeScript that adds the custom endpoints of a running server to those that dendro/client has types for.
import { type Invocation, SHIPPED_ENDPOINTS } from '../config.ts';
import { loadDefinitions } from '../endpoint/catalog.ts';
import { generateTypes } from './endpoint-types.ts';
import { requireRunningServer } from './running-server.ts';
import { requireEndpoints } from './server-catalog.ts';

export async function types(invocation: Invocation): Promise<void> {
  const server = requireRunningServer(invocation);
  const endpoints = await requireEndpoints(server, { maxAttempts: 5, retryUnreachable: false });
  const shipped = loadDefinitions(SHIPPED_ENDPOINTS).map(({ name }) => name);
  const custom = endpoints.filter(({ name }) => !shipped.includes(name));
  process.stdout.write(generateTypes(custom, server.url));
}
