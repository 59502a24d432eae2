// dendro types: prints TypeScript that adds the custom endpoints of a running server to those that dendro/client has types for.
import { type Invocation, SHIPPED_ENDPOINTS } from '../config.ts';
import { loadDefinitions } from '../endpoint/catalog.ts';
import { generateTypes } from './endpoint-types.ts';
import type { Io } from './io.ts';
import { listEndpoints, requireServer } from './target.ts';

export async function types(invocation: Invocation, { stdout }: Io): Promise<void> {
  const server = requireServer(invocation);
  const endpoints = await listEndpoints(server, { maxAttempts: 5, retryUnreachable: false });
  const shipped = loadDefinitions(SHIPPED_ENDPOINTS).map(({ name }) => name);
  const custom = endpoints.filter(({ name }) => !shipped.includes(name));
  stdout.write(generateTypes(custom, server.url));
}
