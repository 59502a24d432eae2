// The API as the console uses it: the typed client with the token of this tab. No other file sends requests, and requests go only
// to the origin of the page.
import {
  type Alert,
  type AnyEndpoints,
  type Client,
  createClient,
  DendroError,
  type Explanation,
} from '../../client/index.ts';
import { readToken } from '../token.ts';
import type { Endpoint } from './catalog.ts';
import { parseExactJson } from './exact-json.ts';
import type { QueryResult } from './query-result.ts';

export { type Alert, DendroError as ApiError, type Explanation } from '../../client/index.ts';
export type { QueryResult, Row } from './query-result.ts';

export interface RequestOptions {
  /** Runs the query even if the server has a cached result. */
  readonly forceRefresh?: boolean;
  readonly signal?: AbortSignal;
}

type Parameters = Readonly<Record<string, string>>;

export async function runQuery(
  endpoint: string,
  parameters: Parameters,
  options: RequestOptions = {},
): Promise<QueryResult> {
  const result = await send(client => client.query(endpoint, parameters, options));
  const { rows, clipped, nextCursor, dataThrough } = result;
  return {
    rows,
    ranAt: result.ranAt.getTime(),
    ranAtLocal: Date.now() - result.ageSeconds * 1000,
    dataThrough: dataThrough === undefined ? undefined : Date.parse(dataThrough),
    clipped,
    nextCursor,
  };
}

/** Throws `not_found` if the endpoint has no explanation. */
export function explainQuery(
  endpoint: string,
  parameters: Parameters,
  options: RequestOptions = {},
): Promise<Explanation> {
  return send(client => client.explain(endpoint, parameters, options));
}

export function fetchCatalog(): Promise<readonly Endpoint[]> {
  return send(client => client.listEndpoints());
}

export function fetchAlerts(signal: AbortSignal): Promise<readonly Alert[]> {
  return send(client => client.listAlerts({ signal }));
}

/** The URL of the internal listener, for commands. Only the API description has it. */
export async function fetchInternalUrl(): Promise<string> {
  try {
    const response = await fetch('openapi.json', { headers: { 'X-API-KEY': readToken() ?? '' } });
    const { paths } = await response.json();
    const url: string = paths['/api/logs'].servers[0].variables.internal_url.default;
    return new URL(url, location.href).href.replace(/\/$/, '');
  } catch {
    return 'http://127.0.0.1:4001'; // the default
  }
}

export function ageSeconds({ ranAtLocal }: QueryResult): number {
  return Math.max(0, (Date.now() - ranAtLocal) / 1000);
}

let current: { readonly token: string; readonly client: Client<AnyEndpoints> } | undefined;

/** A client caches responses, so another token gets another client. */
function clientOf(token: string): Client<AnyEndpoints> {
  if (current?.token !== token) {
    // No retries in the client: the page shows an error at once, and retries by itself.
    const options = { url: new URL('.', location.href).href, token, retries: 0, parseJson: parseExactJson };
    current = { token, client: createClient<AnyEndpoints>(options) };
  }
  return current.client;
}

/** Seconds until a retry if the server is unreachable or its response is unreadable. */
const RETRY_SECONDS = 5;

async function send<T>(call: (client: Client<AnyEndpoints>) => Promise<T>): Promise<T> {
  try {
    return await call(clientOf(readToken() ?? ''));
  } catch (error) {
    if (!(error instanceof DendroError && ['unreachable', 'unreadable'].includes(error.code))) throw error;
    throw new DendroError(error.code, error.message, { ...error, retryAfterSeconds: RETRY_SECONDS });
  }
}
