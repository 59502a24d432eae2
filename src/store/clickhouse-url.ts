// Parses the URL of a ClickHouse store: clickhouse://user:password@host:8123/database?host=…&cluster=…
// Error messages contain no part of the URL: a password with an unescaped / or ? ends up in the path or in the parameters.
import { UsageError } from '../domain/errors.ts';

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

export interface ClickHouseUrl {
  /** The HTTP interface of each host, such as http://host:8123. */
  readonly urls: readonly string[];
  readonly database: string;
  readonly reader: Credentials;
  /** The user that inserts; the same as `reader` unless the URL names another. */
  readonly writer: Credentials;
  /** Undefined for a single node. */
  readonly cluster: string | undefined;
}

const EXAMPLE = 'clickhouse://user:password@host:8123/database';
const ENCODING_HINT = 'in a password write / as %2F, ? as %3F and # as %23';
const DEFAULT_PORTS = { http: '8123', https: '8443' } as const;
const PARAMETERS = ['host', 'cluster', 'insert_user', 'insert_password'];

export function isClickHouseUrl(text: string): boolean {
  return /^clickhouses?:/i.test(text);
}

/** `option` is the flag or the environment variable that error messages name. Throws a UsageError. */
export function parseClickHouseUrl(text: string, option = '--store'): ClickHouseUrl {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof InvalidUrl)) throw error;
    throw new UsageError(`${option} ${error.message}; example: ${EXAMPLE}`);
  }
}

/** Its message is the predicate of a sentence, such as "is not a valid URL". */
class InvalidUrl extends Error {}

function parse(text: string): ClickHouseUrl {
  const scheme = /^clickhouses:/i.test(text) ? 'https' : 'http';
  // Parsed as http or https, because URL validates host and port only for schemes that it knows.
  const url = toUrl(text.replace(/^clickhouses?:\/\//i, `${scheme}://`));
  const parameters = url.searchParams;
  if ([...parameters.keys()].some(name => !PARAMETERS.includes(name)))
    throw new InvalidUrl(
      `has an unknown parameter; allowed parameters are ${PARAMETERS.join(', ')}; ${ENCODING_HINT}`,
    );
  const database = decode(url.pathname.slice(1)) || 'default';
  if (!/^[A-Za-z_]\w*$/.test(database))
    throw new InvalidUrl(
      `has an invalid database name; allowed are letters, digits and _, without a digit at the start; ${ENCODING_HINT}`,
    );
  const cluster = readSingle(parameters, 'cluster');
  if (cluster !== undefined && !/^[\w.-]+$/.test(cluster))
    throw new InvalidUrl('has an invalid cluster name; allowed are letters, digits, _, - and .');
  const reader = { user: decode(url.username) || 'default', password: decode(url.password) };
  const writer = readWriter(parameters) ?? reader;
  return Object.freeze({
    urls: [hostOf(text), ...parameters.getAll('host')].map(host => toHostUrl(scheme, host)),
    database,
    reader,
    writer,
    cluster,
  });
}

function toUrl(text: string): URL {
  try {
    const url = new URL(text);
    if (/^https?:$/.test(url.protocol) && url.hash === '') return url;
  } catch {
    // The error of URL contains the text, so it is replaced.
  }
  throw new InvalidUrl(`is not a valid URL; ${ENCODING_HINT}`);
}

/** Host and port as written: URL drops ports 80 and 443, which are not ClickHouse's default ports. */
function hostOf(text: string): string {
  const [, authority = ''] = /^\w+:\/\/([^/?#]*)/.exec(text) ?? [];
  return authority.slice(authority.lastIndexOf('@') + 1);
}

function toHostUrl(scheme: 'http' | 'https', host: string): string {
  try {
    const url = new URL(`${scheme}://${host}`);
    if (url.username === '' && url.pathname === '/' && url.search === '')
      return `${scheme}://${url.hostname}:${/:(\d+)$/.exec(host)?.[1] ?? DEFAULT_PORTS[scheme]}`;
  } catch {
    // The error of URL contains the host, so it is replaced.
  }
  throw new InvalidUrl('has an invalid host; write host or host:port');
}

function readWriter(parameters: URLSearchParams): Credentials | undefined {
  const user = readSingle(parameters, 'insert_user');
  const password = readSingle(parameters, 'insert_password');
  if (user === undefined && password !== undefined)
    throw new InvalidUrl('has insert_password without insert_user; add insert_user');
  return user === undefined ? undefined : { user, password: password ?? '' };
}

function readSingle(parameters: URLSearchParams, name: string): string | undefined {
  const values = parameters.getAll(name);
  if (values.length > 1) throw new InvalidUrl(`has ${values.length} values for ${name}; only one is allowed`);
  return values[0] === '' ? undefined : values[0];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new InvalidUrl('has a % that is not followed by two hexadecimal digits; write % itself as %25');
  }
}
