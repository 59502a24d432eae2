// Sends a request to a running server and reads the whole response. Retries if the connection or the response breaks off, and
// if the server is overloaded or restarting.
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../domain/errors.ts';
import { describeUnreachable, type RunningServer } from './running-server.ts';

export interface RetryPolicy {
  readonly maxAttempts: number;
  /** Whether to retry if no connection can be established; the server may be restarting. */
  readonly retryUnreachable: boolean;
  /** Called before each retry after a network error, with its description. */
  readonly onRetry?: (problem: string) => void;
}

export interface ServerResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

const MAX_BACKOFF_SECONDS = 10;

/**
 * Retries after a status of 429 or 503, and after network errors as the policy says. Returns the response of the last attempt,
 * whatever its status. Throws OperatorError if that attempt got no complete response, and an AbortError if `init.signal` aborts.
 */
export async function sendRequest(
  server: RunningServer,
  path: string,
  init: RequestInit,
  { maxAttempts, retryUnreachable, onRetry }: RetryPolicy,
): Promise<ServerResponse> {
  const sleepOptions = init.signal ? { signal: init.signal } : {};
  for (let attempt = 1; ; attempt++) {
    const outcome = await attemptRequest(server, path, init).catch((error: Error) => error);
    const isLast = attempt === maxAttempts;
    if (outcome instanceof Error) {
      if (init.signal?.aborted || outcome instanceof OperatorError) throw outcome;
      const problem = describeUnreachable(server, outcome);
      const mayRetry = retryUnreachable || isConnectionLost(outcome);
      if (isLast || !mayRetry) throw new OperatorError(problem);
      onRetry?.(problem);
      await sleep(backoffMs(attempt, null), undefined, sleepOptions);
      continue;
    }
    const { status, headers } = outcome;
    if (isLast || (status !== 429 && status !== 503)) return outcome;
    await sleep(backoffMs(attempt, headers.get('retry-after')), undefined, sleepOptions);
  }
}

async function attemptRequest(
  server: RunningServer,
  path: string,
  init: RequestInit,
): Promise<ServerResponse> {
  const response = await fetchWithToken(server, path, init);
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, body };
}

/** Throws OperatorError instead of following a redirect, which could send the token to another server. */
export async function fetchWithToken(
  { url, token }: RunningServer,
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

/** Whether a connection was established and then lost. */
function isConnectionLost({ message, cause }: Error): boolean {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code ?? '';
  return message === 'terminated' || ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code);
}

/** Uses Retry-After if the server sent it (a date or 0 counts as 1 s), else exponential back-off. At most MAX_BACKOFF_SECONDS. */
function backoffMs(attempt: number, retryAfter: string | null): number {
  const seconds = retryAfter === null ? 0.1 * 2 ** attempt : Number(retryAfter) || 1;
  return Math.min(seconds, MAX_BACKOFF_SECONDS) * 1000;
}
