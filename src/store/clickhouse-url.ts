// Where a store that is not in this process is to be found: clickhouse://user:password@host:8123/database?host=…&cluster=…
// The password is for the store alone: no message here or elsewhere holds it. Nor does one here hold any other part of an
// address, since a password with a / or ? in it reaches into the parts that follow.
import { UsageError } from '../domain/errors.ts';

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

export interface ClickHouseUrl {
  /** Such as http://host:8123; asked in this order when the ones before are gone. */
  readonly urls: readonly string[];
  readonly database: string;
  readonly reader: Credentials;
  /** Whoever may insert; the reader, where no other is named. */
  readonly writer: Credentials;
  /** Of shards and replicas; none: a single node. */
  readonly cluster: string | undefined;
}

const EXAMPLE = 'clickhouse://user:password@host:8123/database';
const ENCODING = 'a / or ? in a password is written %2F or %3F';
const PORTS = { http: '8123', https: '8443' } as const;
const PARAMETERS = ['host', 'cluster', 'insert_user', 'insert_password'];

export function isClickHouseUrl(text: string): boolean {
  return /^clickhouses?:/i.test(text);
}

/** Throws a UsageError that says what is wrong, without the password. */
export function parseClickHouseUrl(text: string): ClickHouseUrl {
  const scheme = /^clickhouses:/i.test(text) ? 'https' : 'http';
  // Only the schemes that URL knows have their host and port checked by it.
  const url = readUrl(text.replace(/^clickhouses?:\/\//i, `${scheme}://`));
  const parameters = url.searchParams;
  if ([...parameters.keys()].some(name => !PARAMETERS.includes(name)))
    throw wrong(`has an unknown parameter; parameters are ${PARAMETERS.join(', ')}, and ${ENCODING}`);
  const database = decode(url.pathname.slice(1)) || 'default';
  if (!/^[A-Za-z_]\w*$/.test(database))
    throw wrong(`names a database that is none; letters, digits and _ are allowed, and ${ENCODING}`);
  const cluster = readOnce(parameters, 'cluster');
  if (cluster !== undefined && !/^[\w.-]+$/.test(cluster))
    throw wrong('names a cluster that is none; letters, digits, _, - and . are allowed');
  const reader = { user: decode(url.username) || 'default', password: decode(url.password) };
  const insertUser = readOnce(parameters, 'insert_user');
  const insertPassword = readOnce(parameters, 'insert_password');
  if (insertUser === undefined && insertPassword !== undefined)
    throw wrong('has an insert_password without an insert_user');
  return Object.freeze({
    urls: [writtenHost(text), ...parameters.getAll('host')].map(host => hostUrl(scheme, host)),
    database,
    reader,
    writer: insertUser === undefined ? reader : { user: insertUser, password: insertPassword ?? '' },
    cluster,
  });
}

function readUrl(text: string): URL {
  try {
    const url = new URL(text);
    if (/^https?:$/.test(url.protocol) && url.hash === '') return url;
  } catch {
    // said below, in words that do not hold the text
  }
  throw wrong('is not an address');
}

/** Host and port as they stand in the address: URL leaves out 80 and 443, which are not ClickHouse's own. */
function writtenHost(text: string): string {
  const [, authority = ''] = /^\w+:\/\/([^/?#]*)/.exec(text) ?? [];
  return authority.slice(authority.lastIndexOf('@') + 1);
}

function hostUrl(scheme: 'http' | 'https', host: string): string {
  try {
    const url = new URL(`${scheme}://${host}`);
    if (url.username === '' && url.pathname === '/' && url.search === '')
      return `${scheme}://${url.hostname}:${/:(\d+)$/.exec(host)?.[1] ?? PORTS[scheme]}`;
  } catch {
    // said below
  }
  throw wrong('names a host that is none; a host is written host or host:port');
}

function readOnce(parameters: URLSearchParams, name: string): string | undefined {
  const values = parameters.getAll(name);
  if (values.length > 1) throw wrong(`has ${values.length} times ${name}; give it once`);
  return values[0] === '' ? undefined : values[0];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong('holds a % that is not followed by two hexadecimal digits; a % itself is written %25');
  }
}

function wrong(what: string): UsageError {
  return new UsageError(`--store ${what}; a ClickHouse store is written ${EXAMPLE}`);
}
