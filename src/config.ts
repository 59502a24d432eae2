// Parses the flags and the environment; nothing else reads them. (cli/program.ts reads the command's name and --help.) Every flag
// except --help has an environment variable DENDRO_<NAME> (for --url, see URL_VARIABLES); the flag takes precedence.
import { existsSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findClosest, suggest } from './domain/closest-name.ts';
import { parseDuration } from './domain/duration.ts';
import { UsageError } from './domain/errors.ts';
import {
  LIMITS,
  type Limits,
  MIN_KEY_LENGTH,
  QUERY_CONCURRENCY,
  QUERY_QUEUE_LENGTH,
} from './domain/limits.ts';
import type { EndpointFolders } from './endpoint/catalog.ts';
import { LOG_FORMATS } from './observe/log.ts';
import { isClickHouseUrl, parseClickHouseUrl } from './store/clickhouse-url.ts';
import type { StoreOptions } from './store/open-store.ts';
import type { StoreName } from './store/store.ts';
import { MICROS_PER_SECOND } from './system/clock.ts';
import type { EnvironmentKey } from './token/active-tokens.ts';

interface Flag {
  /** The placeholder for the value in help texts; a switch has no value. */
  readonly value?: string;
  readonly default?: string;
  /** Can be given several times. */
  readonly many?: true;
  readonly help: string;
}

export const FLAGS = {
  data: { value: 'DIR', default: './data', help: 'data directory; created if it does not exist' },
  host: { value: 'HOST', default: '127.0.0.1', help: 'host of the public listener' },
  port: { value: 'PORT', default: '4000', help: 'port of the public listener; 0 selects a free port' },
  'internal-host': { value: 'HOST', default: '127.0.0.1', help: 'host of the internal listener' },
  'internal-port': {
    value: 'PORT',
    default: '4001',
    help: 'port of the internal listener; 0 selects a free port',
  },
  store: {
    value: 'STORE',
    default: 'duckdb',
    help: 'store of the records: duckdb (embedded, in the data directory) or clickhouse://user:password@host:8123/database',
  },
  endpoints: {
    value: 'DIR',
    help: 'directory with custom endpoint folders, in addition to the built-in endpoints',
  },
  packs: {
    value: 'PACK',
    default: 'explore',
    many: true,
    help: 'packs of endpoints, in addition to the built-in endpoints: explore, alerts, or none (repeatable)',
  },
  alerts: { help: 'evaluate the alerts of the endpoints, and notify their receivers' },
  receivers: { value: 'FILE', help: 'YAML file with the receivers of notifications; requires --alerts' },
  'console-url': {
    value: 'URL',
    help: 'address of the console, for links in notifications; requires --alerts',
  },
  tokens: { value: 'FILE', help: 'tokens file (default: tokens.json in the data directory)' },
  'retention-days': {
    value: 'DAYS',
    default: '90',
    help: 'age at which stored records are removed; intake rejects records that are older',
  },
  'max-disk': {
    value: 'SIZE',
    help: 'limit of the data directory, such as 50GB; the oldest records are removed first (default: no limit)',
  },
  'query-timeout': {
    value: 'SECONDS',
    default: '30',
    help: 'time limit of a query; a slower one is cancelled',
  },
  'memory-limit': {
    value: 'SIZE',
    default: '500MB',
    help: 'memory limit of the embedded store, such as 500MB or 2GB',
  },
  'accept-loss': {
    help: 'if a table of an earlier release cannot be read, convert the rest of the store',
  },
  'cache-bytes': {
    value: 'BYTES',
    default: '67108864',
    help: 'memory limit of the result cache; 0 disables the cache',
  },
  studio: { help: 'let Supabase Studio query logs: compile the parameter sql of logs.all' },
  'default-tier': {
    value: 'TIER',
    default: 'FREE',
    help: 'tier of a request without project_tier, such as FREE, PRO, PAYG or ENTERPRISE',
  },
  'log-format': {
    value: 'FORMAT',
    help: 'format of the log on standard error: json or text (default: text on a terminal, otherwise json)',
  },
  'access-log': { help: 'log every request: method, route, endpoint, status, duration and address' },
  'metrics-open': { help: 'serve /metrics without a token' },
  'project-metrics': { help: 'count requests and errors of each project in /metrics' },
  source: {
    value: 'KIND',
    help: 'log kind or source name of the records; not needed for a quarantine file',
  },
  again: { help: 'load content even if it was loaded before' },
  'allow-rejected': { help: 'exit with 0 even if records are rejected' },
  project: {
    value: 'REF',
    many: true,
    help: 'query: value of the parameter project; token: pin the token to this project (repeatable); check --parity: project to compare; erase: project to erase',
  },
  before: {
    value: 'TIME',
    help: 'erase: only records with an earlier timestamp, such as 2026-11-01 or 2026-11-01T12:00:00Z',
  },
  yes: { help: 'do not ask for confirmation; required if there is no terminal' },
  param: { value: 'NAME=VALUE', many: true, help: 'any other parameter (repeatable)' },
  url: { value: 'URL', help: 'send requests to this running server instead of opening the data directory' },
  token: { value: 'TOKEN', help: 'token for --url (default: DENDRO_API_KEY)' },
  name: { value: 'NAME', help: 'name of the token' },
  scope: {
    value: 'SCOPE',
    many: true,
    help: 'scope of the token: query, query:ENDPOINT, ingest, ingest:KIND, metrics, admin or studio (repeatable)',
  },
  expires: {
    value: 'DURATION',
    help: 'lifetime of the token, such as 30s, 15m, 12h or 90d (default: no expiry)',
  },
  rate: { value: 'N', help: 'rate limit of the token in requests per second' },
  tier: {
    value: 'TIER',
    help: 'maximum project_tier of the token; a higher one in a request is lowered to it',
  },
  'redact-pii': { help: 'replace IP addresses in the results that the token gets' },
  'cors-origin': {
    value: 'ORIGIN',
    many: true,
    help: 'web origin whose pages may call the public listener (repeatable)',
  },
  'trusted-proxy': {
    value: 'CIDR',
    many: true,
    help: 'addresses of reverse proxies, such as 10.0.0.0/8, whose X-Forwarded-For names the client (repeatable)',
  },
  'tls-cert': { value: 'FILE', help: 'PEM certificate of the public listener; requires --tls-key' },
  'tls-key': { value: 'FILE', help: 'unencrypted PEM private key of the certificate' },
  'internal-tls-cert': {
    value: 'FILE',
    help: 'PEM certificate of the internal listener; requires --internal-tls-key',
  },
  'internal-tls-key': { value: 'FILE', help: 'unencrypted PEM private key of that certificate' },
  cluster: { value: 'NAME', help: 'ClickHouse cluster on which the tables are created' },
  apply: { help: 'create the tables instead of printing the statements' },
  from: { value: 'STORE', help: 'source store: duckdb:DIR' },
  to: { value: 'STORE', help: 'target store: clickhouse://user:password@host:8123/database' },
  for: { value: 'DURATION', help: 'length of a silence, such as 30m, 2h or 1d; 0s ends it' },
  deep: { help: 'check: read every record of the data directory and report what is damaged' },
  parity: { help: 'check that the store of --data and --store clickhouse://… return the same results' },
  explain: {
    help: 'print how many records remain after each condition of the query, instead of its rows',
  },
  json: { help: 'print JSON instead of a table' },
  csv: {
    help: 'print CSV instead of a table, with a single quote before texts that a spreadsheet would run as formulas',
  },
  help: { help: 'print this help' },
} as const satisfies Record<string, Flag>;

export type FlagName = keyof typeof FLAGS;

/** The listener of a running server that a command with --url sends its requests to. */
export type ListenerName = 'public' | 'internal';

/** --url has a variable for each listener, because a machine often sends requests to both. */
export const URL_VARIABLES: Readonly<Record<ListenerName, string>> = {
  public: 'DENDRO_URL',
  internal: 'DENDRO_INTERNAL_URL',
};

export interface Invocation {
  readonly positionals: readonly string[];
  readonly environmentKeys: readonly EnvironmentKey[];
  /** Reads a variable that the operator has named in a file. */
  readonly readVariable: (name: string) => string | undefined;
  /** The listener that --url names. */
  readonly listener: ListenerName;
  /** Whether the variable with the URL of the other listener is set. */
  readonly hasOtherUrl: boolean;
  /** Where the value of the flag comes from; undefined: it is not given. */
  origin(name: FlagName): 'flag' | 'variable' | undefined;
  /** The flag's value, or that of its variable, or the default. */
  text(name: FlagName): string | undefined;
  /** All values of a repeatable flag, or of its variable, or the default. */
  many(name: FlagName): readonly string[];
  /** Whether a switch is given as a flag, or its variable turns it on. */
  isOn(name: FlagName): boolean;
}

/** Parses the arguments after the command's name. Throws a UsageError for a flag that the command does not have. */
export function readInvocation(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  flags: readonly FlagName[],
  listener: ListenerName = 'public',
): Invocation {
  const { positionals, values } = parseFlags(args, flags);
  const variable = (name: FlagName) =>
    (name === 'url' ? environment[URL_VARIABLES[listener]] : environment[variableOf(name)]) || undefined;
  return {
    positionals,
    environmentKeys: readEnvironmentKeys(environment),
    readVariable: name => environment[name],
    listener,
    hasOtherUrl: Boolean(environment[URL_VARIABLES[listener === 'public' ? 'internal' : 'public']]),
    origin(name) {
      if (values[name] !== undefined) return 'flag';
      return variable(name) === undefined ? undefined : 'variable';
    },
    many(name) {
      const flag: Flag = FLAGS[name];
      const given = values[name] as string[] | undefined;
      return given ?? (variable(name) ?? flag.default ?? '').split(/[\s,]+/).filter(Boolean);
    },
    text(name) {
      const given = (values[name] as string[] | undefined) ?? [];
      if (given.length > 1) throw new UsageError(`--${name} is given ${given.length} times; give it once`);
      const flag: Flag = FLAGS[name];
      return given[0] ?? variable(name) ?? flag.default;
    },
    isOn: name => values[name] !== undefined || readSwitch(variableOf(name), variable(name)),
  };
}

function parseFlags(
  args: readonly string[],
  flags: readonly FlagName[],
): Pick<ReturnType<typeof parseArgs>, 'positionals' | 'values'> {
  const options: Record<string, { type: 'string' | 'boolean'; multiple: boolean }> = {};
  for (const name of flags) options[name] = { type: isSwitch(name) ? 'boolean' : 'string', multiple: true };
  // Node takes a negative number for a flag. With `=` it is a value, and the error about it says what is allowed.
  const joined: string[] = [];
  for (const arg of args) {
    const previous = joined.at(-1) ?? '';
    if (/^-\d/.test(arg) && options[previous.slice(2)]?.type === 'string')
      joined.splice(-1, 1, `${previous}=${arg}`);
    else joined.push(arg);
  }
  try {
    return parseArgs({ args: joined, options, allowPositionals: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const [reason = ''] = message.split(/\. |\n/);
    if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') throw new UsageError(reason);
    const unknown = /'(.+)'/s.exec(reason)?.[1] ?? '';
    const names = flags.map(name => `--${name}`);
    throw new UsageError(`${reason}; ${suggest(unknown, names, 'allowed flags')}`);
  }
}

function readSwitch(variable: string, value: string | undefined): boolean {
  if (value === undefined || /^(0|false|no|off)$/i.test(value)) return false;
  if (/^(1|true|yes|on)$/i.test(value)) return true;
  throw new UsageError(`${variable} ${value} is unknown; allowed: 1, true, yes, on, 0, false, no, off`);
}

export function isSwitch(name: FlagName): boolean {
  const flag: Flag = FLAGS[name];
  return flag.value === undefined;
}

export function variableOf(flag: FlagName): string {
  return `DENDRO_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/** The variables of the environment that look like Dendro's but are none, each with the name that was probably meant. */
export function findUnknownVariables(environment: NodeJS.ProcessEnv): string[] {
  const flags = (Object.keys(FLAGS) as FlagName[]).filter(name => name !== 'help');
  const known = [...flags.map(variableOf), ...Object.values(URL_VARIABLES), ...Object.keys(KEY_VARIABLES)];
  const unknown = Object.keys(environment).filter(
    name => name.startsWith('DENDRO_') && !known.includes(name),
  );
  const withoutPrefix = (name: string) => name.slice('DENDRO_'.length);
  return unknown.map(name => {
    const closest = findClosest(withoutPrefix(name), known.map(withoutPrefix));
    return closest === undefined ? name : `${name} (did you mean DENDRO_${closest}?)`;
  });
}

/** What the value comes from, as error messages name it: the variable, or else the flag. */
export function nameOf({ origin, listener }: Invocation, name: FlagName): string {
  if (origin(name) !== 'variable') return `--${name}`;
  return name === 'url' ? URL_VARIABLES[listener] : variableOf(name);
}

/**
 * Returns the switch that is on, of several that exclude each other. Variables count only if none is given as a flag. Throws a
 * UsageError if two are given as flags or, without a flag, two are turned on by variables.
 */
export function readOneOf<Name extends FlagName>(
  invocation: Invocation,
  names: readonly Name[],
): Name | undefined {
  const byFlag = names.filter(name => invocation.origin(name) === 'flag');
  const [only, ...others] = byFlag.length > 0 ? byFlag : names.filter(name => invocation.isOn(name));
  if (only !== undefined && others[0] !== undefined)
    throw new UsageError(
      `${nameOf(invocation, only)} and ${nameOf(invocation, others[0])} exclude each other; give one of them`,
    );
  return only;
}

/** Variables whose values are secrets of tokens, with the tokens' scopes. They have no flag: the process list shows flags. */
export const KEY_VARIABLES = {
  DENDRO_API_KEY: ['query', 'ingest', 'metrics'],
  DENDRO_INGEST_KEY: ['ingest'],
  DENDRO_QUERY_KEY: ['query'],
} as const;

function readEnvironmentKeys(environment: NodeJS.ProcessEnv): EnvironmentKey[] {
  return Object.entries(KEY_VARIABLES).flatMap(([name, scopes]) => {
    const secret = environment[name];
    return secret === undefined ? [] : { name, secret, scopes };
  });
}

/** Only for a server: other commands do not use the keys, or send one to a server, which checks it. */
function checkKeys(keys: readonly EnvironmentKey[]): void {
  for (const [index, { name, secret }] of keys.entries()) {
    checkKey(name, secret);
    const twin = keys.slice(0, index).find(key => key.secret === secret);
    if (twin !== undefined)
      throw new UsageError(`${twin.name} and ${name} have the same value; set each to a value of its own`);
  }
}

/** Studio has the key for queries. */
function addStudioScope(key: EnvironmentKey): EnvironmentKey {
  return key.name === 'DENDRO_QUERY_KEY' ? { ...key, scopes: [...key.scopes, 'studio'] } : key;
}

function checkKey(variable: string, key: string): void {
  if (key.length < MIN_KEY_LENGTH)
    throw new UsageError(
      `${variable} is ${key === '' ? 'empty' : 'too short'}; it must have at least ${MIN_KEY_LENGTH} characters`,
    );
  checkHeaderValue(variable, key);
}

/** Throws a UsageError for a key or token that cannot be sent in a header. Does not print it. */
export function checkHeaderValue(name: string, value: string): void {
  if (!/^[\x21-\x7e]+$/.test(value))
    throw new UsageError(
      `${name} contains a character that an HTTP header cannot carry, such as a space; use printable ASCII characters`,
    );
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What the application needs in every process, also in that of a command without listeners. */
export interface AppConfig extends Limits {
  readonly storeName: StoreName;
  readonly store: StoreOptions;
  readonly retentionDays: number;
  readonly endpointFolders: EndpointFolders;
  readonly tokensFile: string;
  /** Whether metrics count the requests of each project. */
  readonly projectMetrics?: boolean;
  /** Whether the parameter `sql` of logs.all is a query of Supabase Studio. */
  readonly studio?: boolean;
  /** The tier of a request that names none. */
  readonly defaultTier?: string;
  /** Undefined: alerts are not evaluated. */
  readonly alerts?: AlertsConfig | undefined;
}

/** Paths of the PEM files, and the flags or variables they come from. */
interface TlsConfig {
  readonly cert: string;
  readonly key: string;
  readonly names?: { readonly cert: string; readonly key: string };
}

export interface ServeConfig extends AppConfig {
  readonly publicAddress: Address;
  readonly internalAddress: Address;
  /** 0 disables the cache. */
  readonly cacheBytes: number;
  /** The limit of the data directory. Undefined: no limit. */
  readonly maxDiskBytes: number | undefined;
  /** Undefined: text on a terminal, otherwise JSON. */
  readonly logFormat: 'json' | 'text' | undefined;
  readonly accessLog: boolean;
  readonly metricsOpen: boolean;
  /** Web origins whose pages may call the public listener; empty: CORS is off. */
  readonly corsOrigins: readonly string[];
  /** Proxies whose X-Forwarded-For is read; empty: the header is ignored. */
  readonly trustedProxies: BlockList;
  /** Of the public listener; undefined: plain HTTP. */
  readonly tls: TlsConfig | undefined;
  readonly internalTls?: TlsConfig | undefined;
  readonly environmentKeys: readonly EnvironmentKey[];
}

export interface AlertsConfig {
  /** Undefined: there are no receivers. */
  readonly receiversFile: string | undefined;
  /** Without a slash at the end; undefined: notifications have no links. */
  readonly consoleUrl: string | undefined;
  readonly readVariable: (name: string) => string | undefined;
}

/** Only with the built-in endpoints: most commands call none. */
export function readAppConfig(invocation: Invocation): AppConfig {
  const store = readStoreOptions(invocation);
  return {
    ...LIMITS,
    storeName: store.clickhouse === undefined ? 'duckdb' : 'clickhouse',
    store,
    retentionDays: readRetentionDays(invocation),
    endpointFolders: { builtIn: BUILT_IN_ENDPOINTS, custom: undefined },
    tokensFile: readTokensPath(invocation),
  };
}

export function readServeConfig(invocation: Invocation): ServeConfig {
  const app = readAppConfig(invocation);
  const publicAddress = readAddress(invocation, 'host', 'port');
  const internalAddress = readAddress(invocation, 'internal-host', 'internal-port');
  checkSharedPort(invocation, publicAddress, internalAddress);
  checkKeys(invocation.environmentKeys);
  const maxDiskBytes = readMaxDisk(invocation, app.store);
  return Object.freeze({
    ...app,
    store: { ...app.store, maxPartBytes: maxDiskBytes && maxDiskBytes / PARTS_OF_MAX_DISK },
    endpointFolders: readEndpointFolders(invocation),
    publicAddress,
    internalAddress,
    maxDiskBytes,
    cacheBytes: readInteger(invocation, 'cache-bytes', 0, 2 ** 40),
    logFormat: readChoice(invocation, 'log-format', LOG_FORMATS),
    accessLog: invocation.isOn('access-log'),
    metricsOpen: invocation.isOn('metrics-open'),
    projectMetrics: invocation.isOn('project-metrics'),
    studio: invocation.isOn('studio'),
    defaultTier: requireText(invocation, 'default-tier'),
    corsOrigins: readOrigins(invocation),
    trustedProxies: readTrustedProxies(invocation),
    tls: readTls(invocation, 'tls-cert', 'tls-key'),
    internalTls: readTls(invocation, 'internal-tls-cert', 'internal-tls-key'),
    environmentKeys: invocation.isOn('studio')
      ? invocation.environmentKeys.map(addStudioScope)
      : invocation.environmentKeys,
    alerts: readAlerts(invocation),
  });
}

export function readStoreOptions(invocation: Invocation): StoreOptions {
  const store = requireText(invocation, 'store');
  const isClickHouse = isClickHouseUrl(store);
  if (store !== 'duckdb' && !isClickHouse)
    throw new UsageError(
      `${nameOf(invocation, 'store')} ${store.replace(/:\/\/.*$/s, '://…')} is unknown; allowed: duckdb, clickhouse://…`,
    );
  return Object.freeze({
    ...(isClickHouse ? { clickhouse: parseClickHouseUrl(store, nameOf(invocation, 'store')) } : {}),
    dataDirectory: requireText(invocation, 'data'),
    memoryLimit: readSize(invocation, 'memory-limit'),
    acceptLoss: invocation.isOn('accept-loss'),
    queryConcurrency: QUERY_CONCURRENCY,
    queryQueueLength: QUERY_QUEUE_LENGTH,
    queryTimeoutSeconds: readInteger(invocation, 'query-timeout', 1, 3600),
  });
}

const BUILT_IN_ENDPOINTS = join(import.meta.dirname, '..', 'endpoints');
const PACKS_DIRECTORY = join(import.meta.dirname, '..', 'packs');

export const PACKS = ['explore', 'alerts'] as const;

export function readEndpointFolders(
  invocation: Invocation,
  packs: readonly string[] = readPacks(invocation),
): EndpointFolders {
  const custom = invocation.text('endpoints');
  if (custom !== undefined && !existsSync(custom))
    throw new UsageError(
      `${nameOf(invocation, 'endpoints')} ${custom} does not exist; name the directory that contains the endpoint folders`,
    );
  return { builtIn: BUILT_IN_ENDPOINTS, packs: packs.map(pack => join(PACKS_DIRECTORY, pack)), custom };
}

/** All endpoints that are part of Dendro, whether they are enabled or not. */
export const SHIPPED_ENDPOINTS: EndpointFolders = {
  builtIn: BUILT_IN_ENDPOINTS,
  packs: PACKS.map(pack => join(PACKS_DIRECTORY, pack)),
  custom: undefined,
};

function readPacks(invocation: Invocation): readonly string[] {
  const packs = new Set(invocation.many('packs').flatMap(text => text.split(',')));
  const hasNone = packs.delete('none');
  for (const pack of packs) {
    if (!PACKS.some(known => known === pack))
      throw new UsageError(
        `${nameOf(invocation, 'packs')} ${pack} is unknown; allowed: ${PACKS.join(', ')}, none`,
      );
    if (hasNone)
      throw new UsageError(
        `${nameOf(invocation, 'packs')} none and ${pack} exclude each other; give one of them`,
      );
  }
  return [...packs];
}

export function readTokensPath(invocation: Invocation): string {
  return invocation.text('tokens') ?? join(requireText(invocation, 'data'), 'tokens.json');
}

function readOrigins(invocation: Invocation): readonly string[] {
  const origins = invocation.many('cors-origin');
  return origins.map(text => {
    // Normalized as browsers send it: lower case, without the default port.
    const origin =
      /^https?:\/\/[^/\s?#@]+$/i.test(text) && URL.canParse(text) ? new URL(text).origin : undefined;
    if (origin === undefined)
      throw new UsageError(
        `${nameOf(invocation, 'cors-origin')} ${text} is not a web origin, such as https://dashboard.example.com`,
      );
    return origin;
  });
}

function readTrustedProxies(invocation: Invocation): BlockList {
  const proxies = new BlockList();
  for (const text of invocation.many('trusted-proxy')) {
    const [, address = '', prefix = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
    const family = isIP(address);
    if (family === 0 || Number(prefix) > (family === 4 ? 32 : 128))
      throw new UsageError(
        `${nameOf(invocation, 'trusted-proxy')} ${text} is not a range of addresses in CIDR notation, such as 10.0.0.0/8, 127.0.0.1/32 or fd00::/8`,
      );
    proxies.addSubnet(address, Number(prefix), family === 4 ? 'ipv4' : 'ipv6');
  }
  return proxies;
}

function readTls(invocation: Invocation, certFlag: FlagName, keyFlag: FlagName): TlsConfig | undefined {
  const cert = invocation.text(certFlag);
  const key = invocation.text(keyFlag);
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new UsageError(
      `--${certFlag} and --${keyFlag} must be given together; only ${nameOf(invocation, cert === undefined ? keyFlag : certFlag)} is given`,
    );
  return { cert, key, names: { cert: nameOf(invocation, certFlag), key: nameOf(invocation, keyFlag) } };
}

/** A receiver without --alerts would get nothing, and nobody would notice. */
function readAlerts(invocation: Invocation): AlertsConfig | undefined {
  if (!invocation.isOn('alerts')) {
    const given = (['receivers', 'console-url'] as const).find(name => invocation.origin(name) !== undefined);
    if (given === undefined) return undefined;
    throw new UsageError(`${nameOf(invocation, given)} needs --alerts: without it, no alert is evaluated`);
  }
  const consoleUrl = invocation.text('console-url');
  // Links append a query, and everybody who is notified sees them.
  if (consoleUrl !== undefined && !(/^https?:\/\/[^/][^?#@]*$/i.test(consoleUrl) && URL.canParse(consoleUrl)))
    throw new UsageError(
      `${nameOf(invocation, 'console-url')} ${consoleUrl} is not a URL without a user name and a query, such as https://logs.example.com`,
    );
  return {
    receiversFile: invocation.text('receivers'),
    consoleUrl: consoleUrl?.replace(/\/+$/, ''),
    readVariable: invocation.readVariable,
  };
}

/** Returns microseconds. */
export function readDuration(invocation: Invocation, name: FlagName): bigint | undefined {
  const text = invocation.text(name);
  if (text === undefined) return undefined;
  const seconds = parseDuration(text);
  if (!seconds)
    throw new UsageError(
      `${nameOf(invocation, name)} ${text} is not a duration such as 30s, 15m, 12h or 90d`,
    );
  return BigInt(seconds) * MICROS_PER_SECOND;
}

export function readRetentionDays(invocation: Invocation): number {
  return readInteger(invocation, 'retention-days', 1, 36_500);
}

const UNIT_EXPONENTS: Readonly<Record<string, number>> = { K: 1, M: 2, G: 3, T: 4 };
/** With --max-disk, no part becomes larger than the limit divided by this: eviction removes whole parts. */
const PARTS_OF_MAX_DISK = 20;

/** The lowest --max-disk. Eviction removes only stored records, so the spool, a full intake queue and the quarantine must fit. */
const MIN_MAX_DISK_BYTES = 1e9;

function readMaxDisk(invocation: Invocation, { clickhouse }: StoreOptions): number | undefined {
  const text = invocation.text('max-disk');
  if (text === undefined) return undefined;
  if (clickhouse !== undefined)
    throw new UsageError(
      `${nameOf(invocation, 'max-disk')} works with --store duckdb only; limit the disks of ClickHouse itself`,
    );
  const [, digits = '', unit = '', binary] = /^(\d{1,6}(?:\.\d+)?) ?([KMGT])(i?)B$/i.exec(text) ?? [];
  const bytes = Number(digits) * (binary ? 1024 : 1000) ** (UNIT_EXPONENTS[unit.toUpperCase()] ?? 0);
  if (unit === '' || bytes < MIN_MAX_DISK_BYTES)
    throw new UsageError(
      `${nameOf(invocation, 'max-disk')} ${text} is not a size of at least 1GB, such as 50GB or 2TB`,
    );
  return bytes;
}

export function requireText(invocation: Invocation, name: FlagName): string {
  const text = invocation.text(name);
  if (text === undefined || text === '') throw new UsageError(`--${name} is required: ${FLAGS[name].help}`);
  return text;
}

function readAddress(invocation: Invocation, host: FlagName, port: FlagName): Address {
  return { host: requireText(invocation, host), port: readInteger(invocation, port, 0, 65_535) };
}

/** With the same port, both listeners are one, with the public host and certificate. Others would be ignored. */
function checkSharedPort(invocation: Invocation, { host, port }: Address, internal: Address): void {
  if (port === 0 || port !== internal.port) return;
  if (invocation.origin('internal-tls-cert') !== undefined)
    throw new UsageError(
      `${nameOf(invocation, 'internal-tls-cert')} has no effect, because both listeners use port ${port}; use --tls-cert and --tls-key, or two ports`,
    );
  if (invocation.origin('internal-host') !== undefined && internal.host !== host)
    throw new UsageError(
      `${nameOf(invocation, 'internal-host')} ${internal.host} differs from --host ${host}, but both use port ${port}; use one host or two ports`,
    );
}

function readChoice<T extends string>(
  invocation: Invocation,
  name: FlagName,
  choices: readonly T[],
): T | undefined {
  const text = invocation.text(name);
  const choice = choices.find(candidate => candidate === text);
  if (text !== undefined && choice === undefined)
    throw new UsageError(`${nameOf(invocation, name)} ${text} is unknown; allowed: ${choices.join(', ')}`);
  return choice;
}

function readInteger(invocation: Invocation, name: FlagName, min: number, max: number): number {
  const text = requireText(invocation, name);
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < min || number > max)
    throw new UsageError(`${nameOf(invocation, name)} ${text} is not a whole number from ${min} to ${max}`);
  return number;
}

function readSize(invocation: Invocation, name: FlagName): string {
  const text = requireText(invocation, name);
  if (!/^\d+(\.\d+)? ?[KMGT]i?B$/i.test(text))
    throw new UsageError(`${nameOf(invocation, name)} ${text} is not a size such as 500MB or 2GB`);
  return text;
}
