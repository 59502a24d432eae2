// Where a command sends its requests: to a running server (--url, --token), or to the application in its own process, which opens
// the data directory (--data, --store). Both have the same routes.
import { setTimeout as sleep } from 'node:timers/promises';
import { startLocalApp } from '../app.ts';
import {
  type AppConfig,
  checkHeaderValue,
  type FlagName,
  type Invocation,
  type ListenerName,
  nameOf,
  URL_VARIABLES,
} from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import type { CatalogEntry } from '../endpoint/catalog-entry.ts';
import type { Observe } from '../observe/event.ts';
import { logTo } from '../observe/log.ts';
import type { Store } from '../store/store.ts';
import { parseJson } from '../system/parse-json.ts';
import type { Io } from './io.ts';
import { showConversion } from './terminal.ts';

export interface Target {
  /** The URL of the server, without a slash at the end. Undefined: this process opens the data directory. */
  readonly url: string | undefined;
  /** Like `fetch`, with a path in place of a URL. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

export interface ServerTarget extends Target {
  readonly url: string;
}

export interface LocalTarget extends Target {
  readonly store: Store;
  /** Whether opening the data directory found that the spool is damaged, or that files of it are missing. */
  readonly isSpoolDamaged: boolean;
}

const SPOOL_DAMAGES: readonly string[] = ['spool_damaged', 'spool_incomplete'];

/** Flags for a data directory or a store that the command opens itself. A running server has its own settings. */
const LOCAL_FLAGS: readonly FlagName[] = [
  'data',
  'store',
  'tokens',
  'memory-limit',
  'query-timeout',
  'retention-days',
  'endpoints',
  'packs',
];

/** Returns undefined if the command is to open the data directory. Throws a UsageError if the flags contradict each other. */
export function findServer(invocation: Invocation): ServerTarget | undefined {
  const localFlag = LOCAL_FLAGS.find(name => invocation.origin(name) === 'flag');
  if (localFlag !== undefined && invocation.origin('url') === 'flag')
    throw new UsageError(
      `--url and --${localFlag} exclude each other: with --url, the running server uses its own data directory and settings`,
    );
  // A local flag, such as --data, takes precedence over the variable with the URL.
  const url = localFlag === undefined ? invocation.text('url') : undefined;
  if (url === undefined) {
    checkWithoutUrl(invocation);
    return undefined;
  }
  const name = nameOf(invocation, 'url');
  // Trimmed, because a token that was read from a file often ends with a newline, which a header cannot contain.
  const given = invocation.text('token')?.trim();
  const token = given ?? findApiKey(invocation);
  if (!token) throw new UsageError(`${name} needs a token: set --token or DENDRO_TOKEN`);
  if (!/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url))
    throw new UsageError(`${name} ${url} is not a URL; allowed: http://HOST:PORT or https://HOST:PORT`);
  checkHeaderValue(given === undefined ? 'DENDRO_API_KEY' : nameOf(invocation, 'token'), token);
  const { username, password } = new URL(url);
  if (username !== '' || password !== '')
    throw new UsageError(`${name} contains a user name or a password; remove them, and set --token instead`);
  const base = url.replace(/\/+$/, '');
  return { url: base, fetch: (path, init) => fetchWithToken(base, token, path, init), close: async () => {} };
}

/** For a command that only works with a running server. */
export function requireServer(invocation: Invocation): ServerTarget {
  const server = invocation.text('url') === undefined ? undefined : findServer(invocation);
  if (server !== undefined) return server;
  const { listener } = invocation;
  throw new UsageError(
    `--url is required: the URL of the ${listener} listener of a running server; ${URL_VARIABLES[listener]} can set it too`,
  );
}

/** Throws a UsageError if the command was probably meant to use a running server. */
function checkWithoutUrl(invocation: Invocation): void {
  if (invocation.origin('token') === 'flag')
    throw new UsageError('--token needs --url: a command that opens the data directory uses no token');
  const { listener, hasOtherUrl } = invocation;
  if (!hasOtherUrl || invocation.origin('data') !== undefined || invocation.origin('store') !== undefined)
    return;
  // Probably someone expects the variable of the other listener to apply. Opening ./data instead would surprise them.
  const other = listener === 'public' ? 'internal' : 'public';
  throw new UsageError(
    `${URL_VARIABLES[other]} is the URL of the ${other} listener, but this command uses the ${listener} listener: set --url or ${URL_VARIABLES[listener]}, or name a data directory with --data`,
  );
}

function findApiKey({ environmentKeys }: Invocation): string | undefined {
  return environmentKeys.find(({ name }) => name === 'DENDRO_API_KEY')?.secret;
}

/** Throws OperatorError instead of following a redirect, which could send the token to another server. */
async function fetchWithToken(
  url: string,
  token: string,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = { 'X-API-KEY': token, ...(init.headers as Record<string, string>) };
  const response = await fetch(`${url}${path}`, { ...init, headers, redirect: 'manual' });
  const location = response.headers.get('location');
  if (location === null || response.status < 300 || response.status > 399) return response;
  await response.body?.cancel();
  const { origin, pathname } = new URL(URL.canParse(location, url) ? location : '', url);
  throw new OperatorError(
    `${url} redirects to ${origin}${pathname}, but a token is not sent to the target of a redirect; set --url to the URL of the server itself`,
  );
}

/** Opens the data directory, and logs what opening it repaired, as a server does. A request that fails throws its own error. */
export async function openLocal(
  config: AppConfig,
  io: Io,
  options?: Parameters<typeof startLocalApp>[2],
): Promise<LocalTarget> {
  const log = showConversion(io, logTo(io.stdout, io.stderr));
  let isOpen = false;
  let failure: unknown;
  let isSpoolDamaged = false;
  const observe: Observe = event => {
    if (SPOOL_DAMAGES.includes(event.type)) isSpoolDamaged = true;
    if (!isOpen) return log(event);
    // The command itself reports these: its error or its output says the same.
    if (
      event.type === 'request_failed' ||
      event.type === 'request_unavailable' ||
      event.type === 'erase_failed'
    )
      failure = event.error;
    else if (event.type !== 'project_erased') log(event);
  };
  const app = await startLocalApp(config, observe, options);
  isOpen = true;
  return {
    url: undefined,
    store: app.store,
    isSpoolDamaged,
    close: () => app.close(),
    async fetch(path, init) {
      const response = await app.inject(path, init);
      if (failure !== undefined) throw failure;
      return response;
    },
  };
}

export function noDataDirectory(dataDirectory: string): OperatorError {
  return new OperatorError(
    `there is no data directory ${dataDirectory}; name it with --data, or a server with --url`,
  );
}

export interface RetryPolicy {
  readonly maxAttempts: number;
  /** Whether to retry if no connection can be established; the server may be restarting. */
  readonly retryUnreachable: boolean;
  /** Called before each retry after a network error, with its description. */
  readonly onRetry?: (problem: string) => void;
}

export interface CompleteResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

const MAX_BACKOFF_SECONDS = 10;

/**
 * Sends a request and reads the whole response. Retries after a status of 429 or 503, and after network errors as the policy says.
 * Returns the response of the last attempt, whatever its status. Throws OperatorError if that attempt got no complete response, and
 * an AbortError if `init.signal` aborts.
 */
export async function sendRequest(
  target: Target,
  path: string,
  init: RequestInit,
  { maxAttempts, retryUnreachable, onRetry }: RetryPolicy,
): Promise<CompleteResponse> {
  const sleepOptions = init.signal ? { signal: init.signal } : {};
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt === maxAttempts;
    let retryAfter: string | null = null;
    try {
      const { status, headers, ...response } = await target.fetch(path, init).then(readWhole);
      if (isLast || (status !== 429 && status !== 503)) return { status, headers, ...response };
      retryAfter = headers.get('retry-after');
    } catch (error) {
      if (target.url === undefined || init.signal?.aborted || error instanceof OperatorError) throw error;
      const problem = describeUnreachable(target.url, error as Error);
      if (isLast || !(retryUnreachable || isConnectionLost(error as Error))) throw new OperatorError(problem);
      onRetry?.(problem);
    }
    await sleep(backoffMs(attempt, retryAfter), undefined, sleepOptions);
  }
}

async function readWhole(response: Response): Promise<CompleteResponse> {
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, body };
}

/** Whether a connection was established and then lost. */
function isConnectionLost({ message, cause }: Error): boolean {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code ?? '';
  return message === 'terminated' || ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code);
}

/** Exponential back-off, but at least Retry-After if the server sent it (a date or 0 counts as 1 s). At most MAX_BACKOFF_SECONDS. */
function backoffMs(attempt: number, retryAfter: string | null): number {
  const seconds = Math.max(0.1 * 2 ** attempt, retryAfter === null ? 0 : Number(retryAfter) || 1);
  return Math.min(seconds, MAX_BACKOFF_SECONDS) * 1000;
}

/** Describes an error of fetch() or of reading its response. The reason, such as ECONNREFUSED, is in the cause of the error. */
export function describeUnreachable(url: string, error: Error): string {
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  // If a host name has several addresses, the message of the cause is empty; only its code says what failed.
  const reason = cause?.message || cause?.code || error.message;
  return error.message === 'terminated'
    ? `the response of ${url} broke off: ${reason}`
    : `cannot reach ${url}: ${reason}`;
}

/**
 * Creates the error for a response that is not the expected one. `hint` follows its message. A wrong parameter is wrong usage,
 * which has an exit code of its own.
 */
export function createResponseError({ url }: Target, status: number, body: string, hint?: string): Error {
  const response = parseJson(body) as { error?: { message?: string; param?: string } } | null | undefined;
  const { message: reason = 'not a response of Dendro', param } = response?.error ?? {};
  const what = url === undefined ? reason : `${url} returned ${status}: ${reason}`;
  const message = [what, hint].filter(Boolean).join('; ');
  return param === undefined ? new OperatorError(message) : new UsageError(message);
}

/** The error for a response of 404 to a path that the listener always has. */
export function wrongListener({ url }: Target, listener: ListenerName): UsageError {
  return new UsageError(
    `${url} is not the ${listener} listener of Dendro: set --url or ${URL_VARIABLES[listener]} to its URL`,
  );
}

/**
 * Sends a request and returns the `result` of its response. Throws a UsageError or an OperatorError if the server does not return
 * one. `listener`: the one that always has this path.
 */
export async function requestResult(
  target: Target,
  path: string,
  init: RequestInit,
  policy: RetryPolicy,
  listener?: ListenerName,
): Promise<unknown> {
  const { status, body } = await sendRequest(target, path, init, policy);
  if (status === 404 && listener !== undefined) throw wrongListener(target, listener);
  const response = parseJson(body.toString()) as { result?: unknown } | null | undefined;
  if (status < 300 && response?.result !== undefined) return response.result;
  const hint =
    status < 300 && listener !== undefined ? `is it the ${listener} listener of Dendro?` : undefined;
  throw createResponseError(target, status, body.toString(), hint);
}

/** The endpoints that the token may call. Throws as `requestResult` does. */
export async function listEndpoints(
  target: Target,
  policy: RetryPolicy,
  signal?: AbortSignal,
): Promise<readonly CatalogEntry[]> {
  const init = signal ? { signal } : {};
  return (await requestResult(target, '/api/endpoints', init, policy, 'public')) as readonly CatalogEntry[];
}
