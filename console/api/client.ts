// The API client. No other file sends requests. The token is sent as a header, and only to the origin of the page.
import { readToken } from '../token.ts';
import type { Endpoint } from './catalog.ts';
import { parseExactJson } from './exact-json.ts';

export type Row = Readonly<Record<string, unknown>>;

export interface QueryResult {
  readonly rows: readonly Row[];
  /** When the query ran, by the server's clock, in Unix milliseconds. */
  readonly ranAt: number;
  /** When the query ran, by the browser's clock, in Unix milliseconds. */
  readonly ranAtLocal: number;
  /** The time of the newest record of the log kind, in Unix milliseconds; undefined if there is no record. */
  readonly dataThrough: number | undefined;
  /** Why rows are missing: any of `row-limit`, `byte-limit` and `retention`. */
  readonly clipped: readonly string[];
}

/** How many records remain after each condition of a query. */
export interface Explanation {
  readonly conditions: readonly { readonly name: string; readonly remaining: number }[];
  /** One sentence. */
  readonly summary: string;
}

/** An error that the API returned, or an error of the client if there was no usable response. */
export class ApiError extends Error {
  readonly code: string;
  /** The invalid parameter, if the error is about one. */
  readonly param: string | undefined;
  /** Undefined if a retry is not expected to help. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, param?: string, retryAfterSeconds?: number) {
    super(message);
    this.code = code;
    this.param = param;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface RequestOptions {
  /** Runs the query even if the server has a cached result. */
  readonly forceRefresh?: boolean;
  readonly signal?: AbortSignal;
}

/** Seconds until a retry if the server is unreachable or its response is unreadable. */
const RETRY_SECONDS = 5;

export async function runQuery(
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
  options: RequestOptions = {},
): Promise<QueryResult> {
  return readBody(await send(createPath('query', endpoint, parameters), options), readResult, options);
}

/** Throws `not_found` if the endpoint has no explanation. */
export async function explainQuery(
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
  options: RequestOptions = {},
): Promise<Explanation> {
  const path = createPath('explain', endpoint, parameters);
  return readBody(
    await send(path, options),
    async response => {
      const { result } = (await response.json()) as { result: Explanation };
      if (!Array.isArray(result?.conditions)) throw new Error('the body has no explanation');
      return result;
    },
    options,
  );
}

function createPath(
  route: 'query' | 'explain',
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
): string {
  const present = Object.entries(parameters).filter(([, value]) => value !== '');
  return `api/endpoints/${route}/${encodeURIComponent(endpoint)}?${new URLSearchParams(present)}`;
}

export async function fetchCatalog(): Promise<readonly Endpoint[]> {
  return readBody(await send('api/endpoints', {}), async response =>
    readResultList<Endpoint>(await response.json()),
  );
}

export function ageSeconds({ ranAtLocal }: QueryResult): number {
  return Math.max(0, (Date.now() - ranAtLocal) / 1000);
}

/**
 * The fetch mode `no-cache` revalidates with the server and reuses the browser's copy if the result has not changed. A
 * forced refresh sends the header `Cache-Control: no-cache`, so that the server runs the query. It uses the fetch mode
 * `reload`, which sends no ETag.
 */
async function send(path: string, { forceRefresh = false, signal }: RequestOptions): Promise<Response> {
  const token = readToken() ?? '';
  // `fetch` would reject other characters in a header with an error that does not name the token.
  if (!/^[\x21-\x7e]*$/.test(token))
    throw new ApiError(
      'unauthorized',
      'invalid token: only printable ASCII characters without spaces are allowed',
    );
  const response = await fetch(path, {
    headers: {
      'X-API-KEY': token,
      Accept: 'application/json',
      ...(forceRefresh ? { 'Cache-Control': 'no-cache' } : {}),
    },
    cache: forceRefresh ? 'reload' : 'no-cache',
    credentials: 'omit',
    redirect: 'error',
    ...(signal === undefined ? {} : { signal }),
  }).catch(error => {
    throw signal?.aborted === true
      ? error
      : new ApiError('unreachable', 'cannot reach the server', undefined, RETRY_SECONDS);
  });
  if (!response.ok) throw await readError(response);
  return response;
}

/** Throws `unreadable` if the body is incomplete or is not from the API, for example from a proxy. */
async function readBody<T>(
  response: Response,
  read: (response: Response) => Promise<T>,
  { signal }: RequestOptions = {},
): Promise<T> {
  try {
    return await read(response);
  } catch (error) {
    throw signal?.aborted === true
      ? error
      : new ApiError(
          'unreadable',
          'cannot read the response: it is incomplete, or another server sent it',
          undefined,
          RETRY_SECONDS,
        );
  }
}

async function readResult(response: Response): Promise<QueryResult> {
  const arrivedAt = Date.now();
  const ageMs = Number(response.headers.get('Age') ?? 0) * 1000;
  const serverTime = Date.parse(response.headers.get('Date') ?? '');
  const dataThrough = Date.parse(response.headers.get('Dendro-Data-Through') ?? '');
  return {
    rows: readResultList<Row>(parseExactJson(await response.text())),
    ranAt: (Number.isNaN(serverTime) ? arrivedAt : serverTime) - ageMs,
    ranAtLocal: arrivedAt - ageMs,
    dataThrough: Number.isNaN(dataThrough) ? undefined : dataThrough,
    clipped: (response.headers.get('Dendro-Clipped') ?? '').split(/,\s*/).filter(reason => reason !== ''),
  };
}

function readResultList<T>(body: unknown): T[] {
  const { result } = body as { result: T[] };
  if (!Array.isArray(result)) throw new Error('the body has no result');
  return result;
}

async function readError(response: Response): Promise<ApiError> {
  const retryAfter = Number(response.headers.get('Retry-After') ?? Number.NaN);
  const retryAfterSeconds = Number.isNaN(retryAfter) ? undefined : retryAfter;
  try {
    const { error } = (await response.json()) as {
      error: { code: string; message: string; param?: string };
    };
    return new ApiError(error.code, error.message, error.param, retryAfterSeconds);
  } catch {
    // The body is not from the API: a proxy sent its own error page.
    return new ApiError(
      'unexpected',
      `unexpected response: ${response.status} ${response.statusText}`.trim(),
    );
  }
}
