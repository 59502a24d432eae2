// Asks a running server which endpoints and parameters it has, and which listener a URL belongs to. Commands use this for helpful
// error messages; `mcp` and `types` also need the endpoints themselves.
import { type ListenerName, URL_VARIABLES } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import type { CatalogEntry } from '../endpoint/catalog-entry.ts';
import { createResponseError, parseJson, type RunningServer } from './running-server.ts';
import { type RetryPolicy, sendRequest } from './send-request.ts';

const CATALOG_PATH = '/api/endpoints';

/** For each listener: a path that only it has, and a method that it rejects with 405 before it checks the token. */
const PROBES = {
  public: { path: CATALOG_PATH, method: 'POST' },
  internal: { path: '/api/logs', method: 'GET' },
} as const;

/** Throws a UsageError if the URL is that of the other listener. Called after a response of 404. */
export async function checkListener({ url }: RunningServer, wanted: ListenerName): Promise<void> {
  const other = wanted === 'public' ? 'internal' : 'public';
  const hasRoutesOf = async (listener: ListenerName) => {
    const { path, method } = PROBES[listener];
    const response = await fetch(`${url}${path}`, { method }).catch(() => undefined);
    await response?.arrayBuffer().catch(() => {});
    return response?.status === 405;
  };
  if ((await hasRoutesOf(wanted)) || !(await hasRoutesOf(other))) return;
  throw new UsageError(
    `${url} is the ${other} listener of Dendro, but this command uses the ${wanted} listener: set --url or ${URL_VARIABLES[wanted]} to its URL`,
  );
}

/** The endpoints that the token may call; undefined if the server returns none, such as for a token above its rate limit. */
export async function listEndpoints(server: RunningServer): Promise<readonly CatalogEntry[] | undefined> {
  const policy = { maxAttempts: 1, retryUnreachable: false };
  const { status, body } = await sendRequest(server, CATALOG_PATH, {}, policy);
  return status === 200 ? readCatalog(body) : undefined;
}

/** The endpoints that the token may call. Throws a UsageError or an OperatorError if the server does not return them. */
export async function requireEndpoints(
  server: RunningServer,
  policy: RetryPolicy,
  signal?: AbortSignal,
): Promise<readonly CatalogEntry[]> {
  const { status, body } = await sendRequest(server, CATALOG_PATH, signal ? { signal } : {}, policy);
  if (status === 404) await checkListener(server, 'public');
  if (status !== 200) throw createResponseError(server.url, status, body.toString());
  const endpoints = readCatalog(body);
  if (endpoints === undefined)
    throw new OperatorError(`${server.url} returned no catalog; is it the public listener of Dendro?`);
  return endpoints;
}

function readCatalog(body: Buffer): readonly CatalogEntry[] | undefined {
  const response = parseJson(body.toString()) as { result?: unknown } | null | undefined;
  return Array.isArray(response?.result) && response.result.every(isCatalogEntry)
    ? response.result
    : undefined;
}

function isCatalogEntry(value: unknown): value is CatalogEntry {
  const { id, name, parameters, columns } = (value ?? {}) as Partial<CatalogEntry>;
  return (
    typeof id === 'string' && typeof name === 'string' && Array.isArray(parameters) && Array.isArray(columns)
  );
}
