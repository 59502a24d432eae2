// Creates the tables of a ClickHouse store, for a single node or for a cluster, and updates those of earlier releases.
import { OperatorError } from '../../domain/errors.ts';
import { LOG_KINDS, type LogKind, lineColumnsOf } from '../../domain/log-columns.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { INDEXED_TEXT } from '../log-sql.ts';
import { toOperatorError } from './errors.ts';
import { fieldColumnDefinitions } from './field-columns.ts';
import { Hosts } from './hosts.ts';

export interface SchemaOptions {
  readonly database: string;
  /** Undefined for a single node. */
  readonly cluster: string | undefined;
  readonly retentionDays: number;
}

const STATEMENT_TIMEOUT_MS = 300_000;
/** Connections to each host: one for the statement, and one for the pings while it runs. */
const CONNECTIONS = 2;
/**
 * 50 years. ClickHouse computes the time of expiry in 32-bit Unix seconds, which overflow in 2106: a record that should expire
 * after that would expire at once. So tables with a longer retention have no TTL.
 */
const MAX_TTL_DAYS = 18_250;

/**
 * The statements for a new database as one text, for reading or for clickhouse-client. They do not change the TTL of
 * existing tables.
 */
export function renderSchema(options: SchemaOptions): string {
  const statements = [
    ...versionStatements(options),
    ...migrations(options).flatMap((each, index) => [...each, insertVersion(options, index + 1)]),
  ];
  return statements.map(statement => `${statement};\n`).join('\n');
}

/** Creates or updates the tables. Safe to repeat. Returns the versions of the migrations that were new to the database. */
export async function applySchema(clickhouse: ClickHouseUrl, retentionDays: number): Promise<number[]> {
  const { database, cluster } = clickhouse;
  // The database may not exist yet, so the connection uses `default`, and all statements name the database. All statements run as
  // the writing user, also those that only read.
  const hosts = new Hosts({ ...clickhouse, database: 'default', reader: clickhouse.writer }, CONNECTIONS);
  try {
    return await applyMigrations(hosts, { database, cluster, retentionDays });
  } catch (error) {
    throw toOperatorError('cannot apply the ClickHouse schema', error);
  } finally {
    await hosts.close();
  }
}

async function applyMigrations(hosts: Hosts, options: SchemaOptions): Promise<number[]> {
  const { database } = options;
  const run = (query: string) =>
    hosts.run(
      ({ client, signal }) => client.command({ query, abort_signal: signal }),
      AbortSignal.timeout(STATEMENT_TIMEOUT_MS),
    );
  for (const statement of versionStatements(options)) await run(statement);
  const supported = migrations(options);
  const [newest] = await readColumn(hosts, `select max(version) from ${database}.dendro_schema`);
  const currentVersion = Number(newest ?? 0);
  if (currentVersion > supported.length)
    throw new OperatorError(
      `database ${database} has schema version ${currentVersion}, but this version of Dendro supports versions up to ${supported.length}; upgrade Dendro`,
    );
  const applied: number[] = [];
  for (const [index, statements] of supported.entries()) {
    const version = index + 1;
    // Old migrations run too: they change nothing that exists, and create tables that are missing.
    for (const statement of statements) await run(statement);
    if (version <= currentVersion) continue;
    await run(insertVersion(options, version));
    applied.push(version);
  }
  const withTtl = await readColumn(
    hosts,
    `select name from system.tables where database = '${database}' and position(engine_full, ' TTL ') > 0`,
  );
  for (const kind of LOG_KINDS) {
    const table = storageTable(kind, options);
    const ttl = ttlOf(options);
    if (ttl === '' && !withTtl.includes(table)) continue;
    await run(
      `alter table ${database}.${table}${onCluster(options)} ${ttl === '' ? 'remove ttl' : `modify ${ttl}`}`,
    );
  }
  return applied;
}

async function readColumn(hosts: Hosts, query: string): Promise<(number | string | undefined)[]> {
  const { data } = await hosts.run(async ({ client, signal }) => {
    const result = await client.query({ query, format: 'JSONCompact', abort_signal: signal });
    return result.json<[number | string]>();
  }, AbortSignal.timeout(STATEMENT_TIMEOUT_MS));
  return data.map(([cell]) => cell);
}

/** Statements that create the database and the table of applied migrations. */
function versionStatements(options: SchemaOptions): string[] {
  const { database, cluster } = options;
  // Every server of the cluster is a replica of dendro_schema, whatever its shard.
  const replica = `'/clickhouse/tables/all/${database}/dendro_schema', '{shard}-{replica}'`;
  return [
    `create database if not exists ${database}${onCluster(options)}`,
    `create table if not exists ${database}.dendro_schema${onCluster(options)}
(
  version UInt32,
  applied_at DateTime default now()
)
engine = ${cluster === undefined ? 'MergeTree' : `ReplicatedMergeTree(${replica})`}
order by version`,
  ];
}

function insertVersion({ database }: SchemaOptions, version: number): string {
  return `insert into ${database}.dendro_schema (version) values (${version})`;
}

/** The statements of versions 1, 2 and so on. All are safe to repeat. The table dendro_schema lists the applied versions. */
export function migrations(options: SchemaOptions): (readonly string[])[] {
  return [
    LOG_KINDS.flatMap(kind => createTables(kind, options)),
    // New tables have these columns. Tables of version 1 that were created earlier do not.
    LOG_KINDS.flatMap(kind => [...addFieldColumns(kind, options), addTextIndex(kind, options)]),
  ];
}

/**
 * `timestamp` is Unix microseconds, UTC. One partition per day, so that the TTL drops whole parts. In the order of project and time,
 * so that a query about one project reads only the granules of that project. The deduplication window is the number of recent blocks
 * whose tokens the table remembers. The spool deletes a record once it is inserted, so an inserted record must survive a power failure.
 */
function createTables(kind: LogKind, options: SchemaOptions): string[] {
  const { database, cluster } = options;
  const table = `${database}.${storageTable(kind, options)}`;
  const columns = lineColumnsOf(kind).map(({ name, clickhouse }) => `${name} ${clickhouse}`);
  const path = `/clickhouse/tables/{shard}/${database}/${kind}_logs_local`;
  const [engine, deduplication] =
    cluster === undefined
      ? ['MergeTree', 'non_replicated_deduplication_window = 10000']
      : [
          `ReplicatedMergeTree('${path}', '{replica}')`,
          'replicated_deduplication_window = 10000,\n  replicated_deduplication_window_seconds = 604800',
        ];
  const createTable = `create table if not exists ${table}${onCluster(options)}
(
  ${[...columns, ...fieldColumnDefinitions(kind)].join(',\n  ')}
)
engine = ${engine}
partition by toDate(toDateTime(intDiv(timestamp, 1000000), 'UTC'))
order by (project, timestamp)
${ttlOf(options)}
settings
  ttl_only_drop_parts = 1,
  ${deduplication},
  fsync_after_insert = 1,
  fsync_part_directory = 1`;
  if (cluster === undefined) return [createTable];
  // Sharded by project, so that a query about one project runs on one shard. The configuration of each server must define the
  // macros {shard} and {replica}.
  const distributed = `create table if not exists ${database}.${kind}_logs${onCluster(options)}
as ${table}
engine = Distributed('${cluster}', ${database}, ${kind}_logs_local, sipHash64(project))`;
  return [createTable, distributed];
}

/** The Distributed table of a cluster comes last: its columns must exist in the tables of the shards. */
function addFieldColumns(kind: LogKind, options: SchemaOptions): string[] {
  const tables = new Set([storageTable(kind, options), `${kind}_logs`]);
  const additions = fieldColumnDefinitions(kind).map(definition => `add column if not exists ${definition}`);
  return [...tables].map(
    table => `alter table ${options.database}.${table}${onCluster(options)}\n  ${additions.join(',\n  ')}`,
  );
}

/**
 * For each granule (8,192 records), a Bloom filter of the texts of three characters, so that a search skips granules that cannot match.
 * Inserts and merges write it; parts of earlier versions have it after a merge.
 */
function addTextIndex(kind: LogKind, options: SchemaOptions): string {
  const table = `${options.database}.${storageTable(kind, options)}`;
  return `alter table ${table}${onCluster(options)}
  add index if not exists text_index ${INDEXED_TEXT} type ngrambf_v1(3, 65536, 2, 0) granularity 1`;
}

function ttlOf({ retentionDays }: SchemaOptions): string {
  if (retentionDays > MAX_TTL_DAYS) return '';
  return `ttl toDateTime(intDiv(timestamp, 1000000), 'UTC') + toIntervalDay(${retentionDays})`;
}

/** On a cluster the records are in local tables, and the table that queries use is Distributed. */
export function storageTable(kind: LogKind, { cluster }: Pick<SchemaOptions, 'cluster'>): string {
  return cluster === undefined ? `${kind}_logs` : `${kind}_logs_local`;
}

export function onCluster({ cluster }: Pick<SchemaOptions, 'cluster'>): string {
  return cluster === undefined ? '' : ` on cluster '${cluster}'`;
}
