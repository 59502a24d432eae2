// The flags --url and --token: the running server that a command sends requests to, instead of opening the data directory.
import type { Invocation } from '../config.ts';
import { UsageError } from '../domain/errors.ts';

export interface RunningServer {
  /** Without a slash at the end. */
  readonly url: string;
  readonly token: string;
}

/** Returns undefined if --url is not given. */
export function readRunningServer(invocation: Invocation): RunningServer | undefined {
  const url = invocation.text('url');
  if (url === undefined) return undefined;
  const token = invocation.text('token') ?? findApiKey(invocation);
  if (token === undefined) throw new UsageError('--url needs a token: set --token or DENDRO_API_KEY');
  if (!/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url))
    throw new UsageError(`--url ${url} is not a URL; allowed: http://HOST:PORT or https://HOST:PORT`);
  return { url: url.replace(/\/+$/, ''), token };
}

function findApiKey({ environmentKeys }: Invocation): string | undefined {
  return environmentKeys.find(({ name }) => name === 'DENDRO_API_KEY')?.secret;
}

/** Describes an error of fetch() or of reading its response. Node reports the reason, such as ECONNREFUSED, as its cause. */
export function describeUnreachable({ url }: RunningServer, error: Error): string {
  const reason = (error.cause as Error | undefined)?.message ?? error.message;
  return error.message === 'terminated'
    ? `the response of ${url} broke off: ${reason}`
    : `cannot reach ${url}: ${reason}`;
}

/** The message of an error response; undefined if the body is not an error response of Dendro. */
export function readErrorMessage(body: string): string | undefined {
  const response = parseJson(body) as { error?: { message?: string } } | undefined;
  return response?.error?.message;
}

/** Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
