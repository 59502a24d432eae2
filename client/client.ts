// createClient(): sends requests to a server's public listener, retries after the statuses 429 and 503, and reads the responses.
import { DendroError, toError } from './error.ts';
import type { Endpoints } from './index.ts';
import { ResponseCache } from './response-cache.ts';
import {
  type Alert,
  type CatalogEndpoint,
  type Explanation,
  type QueryResult,
  toQueryResult,
} from './result.ts';

export interface ClientOptions {
  /** The URL of the server's public listener, such as `https://logs.example.com`. */
  readonly url: string;
  readonly token: string;
  /** The maximum number of retries of a request after the statuses 429 and 503; default 2. */
  readonly retries?: number;
  /** The longest wait before a retry; default 30. If the wait would be longer, the error is thrown at once. */
  readonly maxRetrySeconds?: number;
  /**
   * The size of the response cache in characters; default 8,388,608. 0 turns it off. A cached response is reused if the server
   * has no newer result.
   */
  readonly cacheCharacters?: number;
  /** Parses the response of a query; default JSON.parse, which rounds numbers that a double cannot represent (large ids). */
  readonly parseJson?: (text: string) => unknown;
}

export interface QueryOptions {
  /** Aborts the request, and the wait before a retry. The method then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Runs the query even if the server has a cached result; at most once in 10 s for the same query. */
  readonly forceRefresh?: boolean;
}

type EndpointMap<E> = { readonly [Name in keyof E]: { parameters: object; row: unknown } };

export interface Client<E extends EndpointMap<E> = Endpoints> {
  query<Name extends keyof E & string>(
    endpoint: Name,
    parameters: E[Name]['parameters'],
    options?: QueryOptions,
  ): Promise<QueryResult<E[Name]['row']>>;
  /** Why the result of a query is what it is. Throws `not_found` if the endpoint has no explanation. */
  explain<Name extends keyof E & string>(
    endpoint: Name,
    parameters: E[Name]['parameters'],
    options?: Pick<QueryOptions, 'signal'>,
  ): Promise<Explanation>;
  /** The endpoints that the token may call. */
  listEndpoints(options?: Pick<QueryOptions, 'signal'>): Promise<readonly CatalogEndpoint[]>;
  /** Throws `not_found` if the server does not evaluate alerts, and `forbidden` if the token may not query all projects. */
  listAlerts(options?: Pick<QueryOptions, 'signal'>): Promise<readonly Alert[]>;
}

/**
 * Throws a TypeError for an invalid `url`, and a DendroError for an invalid `token`. A method that fails throws a DendroError,
 * the reason of the aborted signal, or a RangeError for an invalid Date.
 */
export function createClient<E extends EndpointMap<E> = Endpoints>(options: ClientOptions): Client<E> {
  const connection = new Connection(options);
  const { parseJson = JSON.parse } = options;
  return {
    async query(endpoint, parameters, queryOptions = {}) {
      const path = createPath('query', endpoint, parameters);
      const { headers, text } = await connection.get(path, queryOptions);
      return toQueryResult(headers, readResult(text, parseJson, Array.isArray));
    },
    async explain(endpoint, parameters, { signal } = {}) {
      const { text } = await connection.get(createPath('explain', endpoint, parameters), { signal });
      return readResult(text, JSON.parse, isObject);
    },
    async listEndpoints({ signal } = {}) {
      const { text } = await connection.get('/api/endpoints', { signal });
      return readResult(text, JSON.parse, Array.isArray);
    },
    async listAlerts({ signal } = {}) {
      const { text } = await connection.get('/api/alerts', { signal });
      return readResult(text, JSON.parse, Array.isArray);
    },
  };
}

interface TextResponse {
  readonly headers: Headers;
  readonly text: string;
}

const DEFAULT_RETRIES = 2;
const DEFAULT_MAX_RETRY_SECONDS = 30;
const DEFAULT_CACHE_CHARACTERS = 8 * 1024 * 1024;

class Connection {
  readonly #url: string;
  readonly #token: string;
  readonly #retries: number;
  readonly #maxRetrySeconds: number;
  readonly #cache: ResponseCache;

  constructor(options: ClientOptions) {
    if (!/^https?:\/\/[^/]/i.test(options.url) || !URL.canParse(options.url))
      throw new TypeError(`url ${options.url} is not a URL; allowed: http://HOST:PORT or https://HOST:PORT`);
    // fetch() would reject other characters in a header with an error that does not name the token.
    if (!/^[\x21-\x7e]*$/.test(options.token))
      throw new DendroError(
        'unauthorized',
        'invalid token: only printable ASCII characters without spaces are allowed',
      );
    this.#url = options.url.replace(/\/+$/, '');
    this.#token = options.token;
    this.#retries = options.retries ?? DEFAULT_RETRIES;
    this.#maxRetrySeconds = options.maxRetrySeconds ?? DEFAULT_MAX_RETRY_SECONDS;
    this.#cache = new ResponseCache(options.cacheCharacters ?? DEFAULT_CACHE_CHARACTERS);
  }

  /** Retries after 429 and 503. Returns the first response with status 200, or the cached one after a 304; any other throws. */
  async get(path: string, options: QueryOptions): Promise<TextResponse> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#send(path, options);
      } catch (error) {
        const seconds = retryDelaySeconds(error, attempt);
        if (attempt >= this.#retries || seconds === undefined || seconds > this.#maxRetrySeconds) throw error;
        await sleep(seconds * 1000, options.signal);
      }
    }
  }

  async #send(path: string, { forceRefresh = false, signal }: QueryOptions): Promise<TextResponse> {
    const url = this.#url + path;
    const cached = forceRefresh ? undefined : this.#cache.get(url);
    const request = {
      headers: {
        'X-API-KEY': this.#token,
        Accept: 'application/json',
        ...(forceRefresh && { 'Cache-Control': 'no-cache' }),
        ...(cached && { 'If-None-Match': cached.etag }),
      },
      // With both modes, a browser asks the server every time. `no-store` also adds `Cache-Control: no-cache`, which forces the
      // server to run the query unless the request has If-None-Match. So other requests use `no-cache`, which does not add it.
      cache: forceRefresh || cached ? ('no-store' as const) : ('no-cache' as const),
      credentials: 'omit' as const,
      redirect: 'error' as const, // a redirect could send the token elsewhere
      ...(signal && { signal }),
    };
    try {
      const response = await fetch(url, request);
      return await this.#read(url, response, cached?.text);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof DendroError) throw error;
      throw new DendroError('unreachable', `cannot reach ${this.#url}: ${reasonOf(error)}`, { cause: error });
    }
  }

  async #read(url: string, response: Response, cachedText: string | undefined): Promise<TextResponse> {
    const { status, headers } = response;
    if (status === 304 && cachedText !== undefined) return { headers, text: cachedText };
    const text = await response.text().catch((error: unknown) => {
      throw unreadable(status, error);
    });
    if (status !== 200) throw toError(response, text);
    const etag = headers.get('ETag');
    if (etag !== null && !/\bno-store\b/.test(headers.get('Cache-Control') ?? ''))
      this.#cache.set(url, { etag, text });
    return { headers, text };
  }
}

/** The wait before the next attempt; undefined if a retry cannot help. The first attempt has the number 0. */
function retryDelaySeconds(error: unknown, attempt: number): number | undefined {
  if (!(error instanceof DendroError) || (error.status !== 429 && error.status !== 503)) return undefined;
  return error.retryAfterSeconds ?? 0.5 * 2 ** attempt;
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Leaves out absent and empty parameters, which mean the same to the API. */
function createPath(route: 'query' | 'explain', endpoint: string, parameters: object): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== '')
      query.append(name, value instanceof Date ? value.toISOString() : String(value));
  return `/api/endpoints/${route}/${encodeURIComponent(endpoint)}?${query}`;
}

function readResult<T>(
  text: string,
  parse: (text: string) => unknown,
  isValid: (result: unknown) => boolean,
): T {
  let result: unknown;
  try {
    result = (parse(text) as { result?: unknown } | null)?.result;
  } catch (error) {
    throw unreadable(200, error);
  }
  if (!isValid(result)) throw unreadable(200, undefined);
  return result as T;
}

/** The error of fetch() itself says only that it failed. In Node, its cause has the reason; a browser tells none to scripts. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & {
    readonly cause?: { readonly message?: string; readonly code?: string };
  };
  return cause?.message || cause?.code || message;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function unreadable(status: number, cause: unknown): DendroError {
  const message = 'cannot read the response: it is incomplete, or not from Dendro';
  return new DendroError('unreadable', message, { status, cause });
}
