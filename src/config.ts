// The only reader of the command line and the environment. Every flag has a variable DENDRO_<NAME>; a flag wins.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { UsageError } from './domain/errors.ts';
import type { EndpointFolders } from './endpoint/catalog.ts';
import { isClickHouseUrl, parseClickHouseUrl } from './store/clickhouse-url.ts';
import type { StoreOptions } from './store/open-store.ts';
import type { StoreName } from './store/store.ts';
import { MICROS_PER_SECOND } from './system/clock.ts';

interface Flag {
  /** What stands behind the flag in help texts; a switch has none. */
  readonly value?: string;
  readonly default?: string;
  /** May be given several times. */
  readonly many?: true;
  readonly help: string;
}

export const FLAGS = {
  data: { value: 'DIR', default: './data', help: 'data directory, made where it is missing' },
  host: { value: 'HOST', default: '127.0.0.1', help: 'address of the public listener' },
  port: { value: 'PORT', default: '4000', help: 'port of the public listener; 0 picks a free one' },
  'internal-host': { value: 'HOST', default: '127.0.0.1', help: 'address of the internal listener' },
  'internal-port': {
    value: 'PORT',
    default: '4001',
    help: 'port of the internal listener; 0 picks a free one',
  },
  store: {
    value: 'STORE',
    default: 'duckdb',
    help: 'where records live: duckdb, embedded in the data directory, or clickhouse://user:password@host:8123/database',
  },
  endpoints: { value: 'DIR', help: 'endpoint folders of your own, besides the built-in ones' },
  tokens: { value: 'FILE', help: 'tokens file (default: tokens.json in the data directory)' },
  'retention-days': {
    value: 'DAYS',
    default: '90',
    help: 'records older than this are removed, and not taken in',
  },
  'query-timeout': { value: 'SECONDS', default: '30', help: 'a query that takes longer is cancelled' },
  'query-concurrency': { value: 'N', default: '8', help: 'queries that run at once' },
  'query-queue': { value: 'N', default: '256', help: 'queries that may wait for their turn' },
  'memory-limit': {
    value: 'SIZE',
    default: '500MB',
    help: 'memory of the embedded store, such as 500MB or 2GB',
  },
  'cache-bytes': { value: 'BYTES', default: '67108864', help: 'memory of the result cache; 0 turns it off' },
  'warm-concurrency': { value: 'N', default: '1', help: 'cached answers that are asked again at once' },
  'intake-queue-bytes': {
    value: 'BYTES',
    default: '268435456',
    help: 'logs that may be on their way into the store; past it senders get 429',
  },
  'metrics-open': { help: 'tell metrics without a token' },
  source: {
    value: 'KIND',
    help: 'log kind or source name of the records; those of a quarantine file tell their own',
  },
  project: {
    value: 'REF',
    many: true,
    help: 'query: the parameter project; token: pin to this project, several allowed; check --parity: ask for it',
  },
  param: { value: 'NAME=VALUE', many: true, help: 'any other parameter; may be given several times' },
  url: { value: 'URL', help: 'use this running server instead of the data directory' },
  token: { value: 'TOKEN', help: 'token for --url (default: DENDRO_API_KEY)' },
  name: { value: 'NAME', help: 'name of the token' },
  scope: {
    value: 'SCOPE',
    many: true,
    help: 'what the token opens: query, query:ENDPOINT, ingest, ingest:KIND, metrics',
  },
  expires: { value: 'TIME', help: 'how long the token is good: 30s, 15m, 12h, 90d (default: for ever)' },
  rate: { value: 'N', help: 'requests a second that the token may make' },
  tier: { value: 'TIER', help: 'highest project_tier that the token may ask for' },
  'redact-pii': { help: 'replace IP addresses in the answers that the token gets' },
  'cors-origin': {
    value: 'ORIGIN',
    many: true,
    help: 'web origin whose pages may call; may be given several times',
  },
  'tls-cert': { value: 'FILE', help: 'PEM certificate of the public listener, with --tls-key' },
  'tls-key': { value: 'FILE', help: 'PEM key of that certificate' },
  cluster: { value: 'NAME', help: 'cluster of shards and replicas that the tables are for' },
  apply: { help: 'make the tables rather than print the statements' },
  from: { value: 'STORE', help: 'where the records are: duckdb:DIR' },
  to: { value: 'STORE', help: 'where they go: clickhouse://user:password@host:8123/database' },
  parity: { help: 'check that the store of --data and --store clickhouse://… answer alike' },
  json: { help: 'print JSON instead of a table' },
  csv: { help: 'print CSV instead of a table' },
  help: { help: 'print this help' },
} as const satisfies Record<string, Flag>;

export type FlagName = keyof typeof FLAGS;

export interface Invocation {
  readonly positionals: readonly string[];
  readonly apiKey: string | undefined;
  /** A flag's value, else its variable's, else its default. */
  text(name: FlagName): string | undefined;
  many(name: FlagName): readonly string[];
  isOn(name: FlagName): boolean;
}

/** Reads what follows the command's name. A flag that the command does not have is an error that lists its flags. */
export function readInvocation(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  flags: readonly FlagName[],
): Invocation {
  const options: Record<string, { type: 'string' | 'boolean'; multiple: boolean }> = {};
  for (const name of flags) options[name] = { type: isSwitch(name) ? 'boolean' : 'string', multiple: true };
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const [fault] = (error as Error).message.split(/\. |\n/);
    throw new UsageError(`${fault}; flags are ${flags.map(name => `--${name}`).join(' ')}`);
  }
  const many = (name: FlagName) => {
    const given = parsed.values[name] as string[] | undefined;
    return given ?? (environment[variableOf(name)]?.split(/[\s,]+/).filter(Boolean) || []);
  };
  return {
    positionals: parsed.positionals,
    apiKey: checkApiKey(environment['DENDRO_API_KEY']),
    many,
    text(name) {
      const given = (parsed.values[name] as string[] | undefined) ?? [];
      if (given.length > 1) throw new UsageError(`--${name} is given ${given.length} times; give it once`);
      const fallback: Flag = FLAGS[name];
      return given[0] ?? (environment[variableOf(name)] || fallback.default);
    },
    isOn: name =>
      parsed.values[name] !== undefined || /^(1|true|yes|on)$/i.test(environment[variableOf(name)] ?? ''),
  };
}

export function isSwitch(name: FlagName): boolean {
  const flag: Flag = FLAGS[name];
  return flag.value === undefined;
}

export function variableOf(flag: FlagName): string {
  return `DENDRO_${flag.toUpperCase().replaceAll('-', '_')}`;
}

const MIN_API_KEY_LENGTH = 16;

function checkApiKey(key: string | undefined): string | undefined {
  if (key !== undefined && key.length < MIN_API_KEY_LENGTH)
    throw new UsageError(`DENDRO_API_KEY is set but shorter than ${MIN_API_KEY_LENGTH} characters`);
  // A header cannot carry anything else, so such a key would never open the door.
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key))
    throw new UsageError(
      'DENDRO_API_KEY holds a space, a line end or another character that no header can carry',
    );
  return key;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ServeConfig {
  readonly publicAddress: Address;
  readonly internalAddress: Address;
  readonly storeName: StoreName;
  readonly store: StoreOptions;
  /** 0: no cache. */
  readonly cacheBytes: number;
  readonly retentionDays: number;
  readonly warmConcurrency: number;
  readonly intakeQueueBytes: number;
  readonly metricsOpen: boolean;
  readonly endpointFolders: EndpointFolders;
  readonly tokensFile: string;
  /** Web origins whose pages may call; none: CORS is off. */
  readonly corsOrigins: readonly string[];
  /** Files of a PEM certificate and its key; none: plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly apiKey: string | undefined;
}

export function readServeConfig(invocation: Invocation): ServeConfig {
  const store = readStoreOptions(invocation);
  return Object.freeze({
    publicAddress: readAddress(invocation, 'host', 'port'),
    internalAddress: readAddress(invocation, 'internal-host', 'internal-port'),
    storeName: store.clickhouse === undefined ? 'duckdb' : 'clickhouse',
    store,
    retentionDays: readRetentionDays(invocation),
    cacheBytes: readInteger(invocation, 'cache-bytes', 0, 2 ** 40),
    warmConcurrency: readInteger(invocation, 'warm-concurrency', 1, 64),
    // Twice the largest body: a smaller bound would refuse some for ever.
    intakeQueueBytes: readInteger(invocation, 'intake-queue-bytes', 32 * 1024 * 1024, 2 ** 40),
    metricsOpen: invocation.isOn('metrics-open'),
    endpointFolders: readEndpointFolders(invocation),
    tokensFile: readTokensFile(invocation),
    corsOrigins: readOrigins(invocation),
    tls: readTls(invocation),
    apiKey: invocation.apiKey,
  });
}

export function readStoreOptions(invocation: Invocation): StoreOptions {
  const store = requireText(invocation, 'store');
  const isClickHouse = isClickHouseUrl(store);
  if (store !== 'duckdb' && !isClickHouse)
    throw new UsageError(
      `--store ${store.replace(/:\/\/.*$/s, '://…')} is not known; allowed are duckdb and clickhouse://…`,
    );
  return Object.freeze({
    ...(isClickHouse ? { clickhouse: parseClickHouseUrl(store) } : {}),
    dataDirectory: requireText(invocation, 'data'),
    memoryLimit: readSize(invocation, 'memory-limit'),
    queryConcurrency: readInteger(invocation, 'query-concurrency', 1, 64),
    queryQueueLength: readInteger(invocation, 'query-queue', 0, 100_000),
    queryTimeoutSeconds: readInteger(invocation, 'query-timeout', 1, 3600),
  });
}

const BUILT_IN_ENDPOINTS = join(import.meta.dirname, '..', 'endpoints');

export function readEndpointFolders(invocation: Invocation): EndpointFolders {
  return { builtIn: BUILT_IN_ENDPOINTS, custom: invocation.text('endpoints') };
}

export function readTokensFile(invocation: Invocation): string {
  return invocation.text('tokens') ?? join(requireText(invocation, 'data'), 'tokens.json');
}

function readOrigins(invocation: Invocation): readonly string[] {
  const origins = invocation.many('cors-origin');
  return origins.map(text => {
    // As browsers write it: in lower case, without a port that goes without saying.
    const origin =
      /^https?:\/\/[^/\s?#@]+$/i.test(text) && URL.canParse(text) ? new URL(text).origin : undefined;
    if (origin === undefined)
      throw new UsageError(`--cors-origin ${text} is not an origin such as https://dashboard.example.com`);
    return origin;
  });
}

function readTls(invocation: Invocation): ServeConfig['tls'] {
  const cert = invocation.text('tls-cert');
  const key = invocation.text('tls-key');
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) throw new UsageError('--tls-cert and --tls-key go together');
  return { cert, key };
}

const DURATION_UNITS: Readonly<Record<string, bigint>> = { s: 1n, m: 60n, h: 3600n, d: 86_400n };

/** In microseconds. */
export function readDuration(invocation: Invocation, name: FlagName): bigint | undefined {
  const text = invocation.text(name);
  if (text === undefined) return undefined;
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = DURATION_UNITS[unit];
  if (seconds === undefined || Number(count) === 0)
    throw new UsageError(`--${name} ${text} is not a time such as 30s, 15m, 12h or 90d`);
  return BigInt(count) * seconds * MICROS_PER_SECOND;
}

export function readRetentionDays(invocation: Invocation): number {
  return readInteger(invocation, 'retention-days', 1, 36_500);
}

export function requireText(invocation: Invocation, name: FlagName): string {
  const text = invocation.text(name);
  if (text === undefined || text === '') throw new UsageError(`--${name} is needed: ${FLAGS[name].help}`);
  return text;
}

function readAddress(invocation: Invocation, host: FlagName, port: FlagName): Address {
  return { host: requireText(invocation, host), port: readInteger(invocation, port, 0, 65_535) };
}

function readInteger(invocation: Invocation, name: FlagName, least: number, most: number): number {
  const text = requireText(invocation, name);
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < least || number > most)
    throw new UsageError(`--${name} ${text} is not a whole number from ${least} to ${most}`);
  return number;
}

function readSize(invocation: Invocation, name: FlagName): string {
  const text = requireText(invocation, name);
  if (!/^\d+(\.\d+)? ?[KMGT]i?B$/i.test(text))
    throw new UsageError(`--${name} ${text} is not a size such as 500MB or 2GB`);
  return text;
}
