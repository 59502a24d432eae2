// The flags --url and --token: the running server that a command sends requests to, instead of opening the data directory.
import { checkHeaderValue, type FlagName, type Invocation, nameOf, URL_VARIABLES } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';

export interface RunningServer {
  /** Without a slash at the end. */
  readonly url: string;
  readonly token: string;
}

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
export function readRunningServer(invocation: Invocation): RunningServer | undefined {
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
  const token = invocation.text('token')?.trim() ?? findApiKey(invocation);
  if (!token) throw new UsageError(`${name} needs a token: set --token or DENDRO_API_KEY`);
  if (!/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url))
    throw new UsageError(`${name} ${url} is not a URL; allowed: http://HOST:PORT or https://HOST:PORT`);
  checkHeaderValue(nameOf(invocation, 'token'), token);
  const { username, password } = new URL(url);
  if (username !== '' || password !== '')
    throw new UsageError(`${name} contains a user name or a password; remove them, and set --token instead`);
  return { url: url.replace(/\/+$/, ''), token };
}

/** For a command that only works with a running server. */
export function requireRunningServer(invocation: Invocation): RunningServer {
  const server = invocation.text('url') === undefined ? undefined : readRunningServer(invocation);
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

/** Describes an error of fetch() or of reading its response. The reason, such as ECONNREFUSED, is in the cause of the error. */
export function describeUnreachable({ url }: RunningServer, error: Error): string {
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  // If a host name has several addresses, the message of the cause is empty; only its code says what failed.
  const reason = cause?.message || cause?.code || error.message;
  return error.message === 'terminated'
    ? `the response of ${url} broke off: ${reason}`
    : `cannot reach ${url}: ${reason}`;
}

/**
 * Creates the error for a response that is not the expected one. `hint` follows its message. A wrong parameter is wrong usage,
 * which has an exit code of its own (main.ts).
 */
export function createResponseError(url: string, status: number, body: string, hint?: string): Error {
  const reason = readErrorMessage(body) ?? 'not a response of Dendro';
  const message = [`${url} returned ${status}: ${reason}`, hint].filter(Boolean).join('; ');
  const response = parseJson(body) as { error?: { param?: string } } | undefined;
  return response?.error?.param === undefined ? new OperatorError(message) : new UsageError(message);
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
