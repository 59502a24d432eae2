// The commands and their flags. The code of a command is loaded only when it runs.
import type { FlagName, Invocation, ListenerName } from '../config.ts';
import type { Io } from './io.ts';

/** Returns the exit code if it is not 0. */
type RunCommand = (invocation: Invocation, io: Io) => Promise<unknown>;

export interface Command {
  readonly name: string;
  /** The arguments after the name, as help prints them; empty: the command accepts only flags. */
  readonly usage: string;
  readonly summary: string;
  readonly flags: readonly FlagName[];
  /** The listener whose URL is given with --url; default: public. */
  readonly listener?: ListenerName;
  readonly examples: readonly string[];
  load(): Promise<RunCommand>;
}

const STORE_FLAGS: readonly FlagName[] = ['data', 'store', 'memory-limit', 'query-timeout', 'accept-loss'];

const SERVE_FLAGS: readonly FlagName[] = [
  'data',
  'host',
  'port',
  'internal-host',
  'internal-port',
  'store',
  'endpoints',
  'packs',
  'alerts',
  'receivers',
  'console-url',
  'tokens',
  'retention-days',
  'max-disk',
  'query-timeout',
  'memory-limit',
  'accept-loss',
  'cache-bytes',
  'studio',
  'default-tier',
  'log-format',
  'access-log',
  'metrics-open',
  'project-metrics',
  'cors-origin',
  'trusted-proxy',
  'tls-cert',
  'tls-key',
  'internal-tls-cert',
  'internal-tls-key',
];

export const commands: readonly Command[] = [
  {
    name: 'serve',
    usage: '',
    summary: 'Receive logs and serve the endpoints over HTTP.',
    flags: SERVE_FLAGS,
    examples: ['dendro serve', 'dendro serve --data /var/lib/dendro --host 0.0.0.0 --port 8080'],
    load: async () => (await import('./serve.ts')).serve,
  },
  {
    name: 'ingest',
    usage: 'FILE…',
    summary:
      'Load NDJSON, JSON or Parquet files (also .gz; - is standard input) into the store, or with --url into a running server.',
    flags: ['source', 'again', 'allow-rejected', 'url', 'token', 'retention-days', ...STORE_FLAGS],
    listener: 'internal',
    examples: [
      'dendro ingest --source edge requests.ndjson.gz',
      'zcat archive.gz | dendro ingest --source function_edge -',
      'dendro ingest --source edge --url http://127.0.0.1:4001 requests.ndjson',
      'dendro ingest data/quarantine.ndjson',
    ],
    load: async () => (await import('./ingest.ts')).ingest,
  },
  {
    name: 'query',
    usage: 'ENDPOINT',
    summary: 'Run an endpoint, by name or UUID, and print its rows.',
    flags: [
      'project',
      'param',
      'explain',
      'json',
      'csv',
      'url',
      'token',
      'endpoints',
      'packs',
      ...STORE_FLAGS,
    ],
    examples: [
      'dendro query logs.all --project abc --param project_tier=PRO',
      'dendro query usage.api-counts --project abc --param interval=daily --csv --url http://127.0.0.1:4000',
      'dendro query logs.all --project abc --explain',
    ],
    load: async () => (await import('./query.ts')).query,
  },
  {
    name: 'types',
    usage: '',
    summary:
      'Print TypeScript that adds the custom endpoints of a running server to the types of dendro/client.',
    flags: ['url', 'token'],
    examples: ['dendro types --url http://127.0.0.1:4000 > dendro-endpoints.d.ts'],
    load: async () => (await import('./types.ts')).types,
  },
  {
    name: 'mcp',
    usage: '',
    summary:
      'Serve the endpoints of a running server as tools to a client of the Model Context Protocol, over standard input and output.',
    flags: ['url', 'token'],
    examples: ['DENDRO_TOKEN=… dendro mcp --url http://127.0.0.1:4000'],
    load: async () => (await import('./mcp.ts')).mcp,
  },
  {
    name: 'token',
    usage: 'create | list | revoke NAME',
    summary:
      'Create a token and print it once, list the tokens, or revoke one. A running server applies a change within 1 s.',
    flags: [
      'name',
      'scope',
      'project',
      'expires',
      'rate',
      'tier',
      'redact-pii',
      'json',
      'data',
      'tokens',
      'endpoints',
    ],
    examples: [
      'dendro token create --name grafana --scope query',
      'dendro token create --name acme --scope query:logs.all --project acme --tier PRO --expires 90d --rate 10',
      'dendro token revoke acme',
    ],
    load: async () => (await import('./token.ts')).token,
  },
  {
    name: 'erase',
    usage: '',
    summary:
      'Erase all records of a project, or those before a time, in a running server (--url, internal listener) or in the data directory of a stopped one.',
    flags: ['project', 'before', 'yes', 'url', 'token', ...STORE_FLAGS],
    listener: 'internal',
    examples: [
      'dendro erase --project abc --url http://127.0.0.1:4001',
      'dendro erase --project abc --before 2026-11-01 --yes --data /var/lib/dendro',
    ],
    load: async () => (await import('./erase.ts')).erase,
  },
  {
    name: 'alert',
    usage: 'list | test NAME | silence NAME | send-test RECEIVER',
    summary:
      'List the alerts of a running server (--url, internal listener), evaluate one and print what it would send, silence one for a time, or send a test to a receiver.',
    flags: ['for', 'json', 'url', 'token'],
    listener: 'internal',
    examples: [
      'dendro alert list --url http://127.0.0.1:4001',
      'dendro alert test alerts.function-errors --url http://127.0.0.1:4001',
      'dendro alert silence alerts.function-errors --for 2h --url http://127.0.0.1:4001',
      'dendro alert send-test team --url http://127.0.0.1:4001',
    ],
    load: async () => (await import('./alert.ts')).alert,
  },
  {
    name: 'demo',
    usage: '',
    summary:
      'Serve a temporary store with a synthetic platform and live traffic, and print the address of its console.',
    flags: ['host', 'port', 'internal-host', 'internal-port', 'endpoints', 'packs', 'memory-limit'],
    examples: ['dendro demo', 'dendro demo --port 8080'],
    load: async () => (await import('./demo.ts')).demo,
  },
  {
    name: 'check',
    usage: '',
    summary:
      'Check the configuration, the data directory and the endpoint folders without serving. Does not change the data, except that --parity applies the records of the spool to the store of --data, as a server does at start.',
    flags: [...SERVE_FLAGS, 'deep', 'parity', 'project', 'json'],
    examples: [
      'dendro check --endpoints ./my-endpoints',
      'dendro check --deep --data ./data',
      "DENDRO_STORE='clickhouse://…' dendro check --parity --project acme",
    ],
    load: async () => (await import('./check.ts')).check,
  },
  {
    name: 'endpoint',
    usage: 'new NAME | test [NAME…]',
    summary:
      'Create a folder with commented template files for a new endpoint in --endpoints, or run the examples of the endpoints there on a temporary store.',
    flags: ['endpoints', 'packs', 'memory-limit', 'query-timeout'],
    examples: [
      'dendro endpoint new errors.by-path --endpoints ./my-endpoints',
      'dendro endpoint test --endpoints ./my-endpoints',
    ],
    load: async () => (await import('./endpoint.ts')).endpoint,
  },
  {
    name: 'backup',
    usage: 'DIR',
    summary:
      'Copy the data of a running server (--url of the internal listener) or of a data directory that no server uses into the directory DIR, and verify the copy. If DIR is an earlier backup, copy only what is new.',
    flags: ['url', 'token', 'data', 'store', 'tokens'],
    listener: 'internal',
    examples: [
      'dendro backup /backup/monday --url http://127.0.0.1:4001',
      'dendro backup /backup/monday --data /var/lib/dendro',
    ],
    load: async () => (await import('./backup.ts')).backup,
  },
  {
    name: 'migrate',
    usage: '',
    summary:
      'Load a copy of the records of an embedded store into ClickHouse and verify the copy. Resumes if interrupted.',
    flags: ['from', 'to', 'memory-limit', 'accept-loss'],
    examples: ["DENDRO_TO='clickhouse://…' dendro migrate --from duckdb:./data"],
    load: async () => (await import('./migrate.ts')).migrate,
  },
  {
    name: 'schema',
    usage: 'clickhouse',
    summary:
      'Print the SQL that creates the tables of a ClickHouse store, or create or update them with --apply.',
    flags: ['store', 'data', 'cluster', 'apply', 'retention-days', 'memory-limit', 'query-timeout'],
    examples: [
      'dendro schema clickhouse --cluster logs',
      "DENDRO_STORE='clickhouse://admin:password@host:8123/dendro' dendro schema clickhouse --apply",
    ],
    load: async () => (await import('./schema.ts')).schema,
  },
];
