// The tables, from the .sql files beside this: for one node, or for a cluster. Migrations are numbered; the one that a
// database has is noted in it, and applying twice changes nothing.
import { readFileSync } from 'node:fs';
import { columnsOf, LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';

export interface SchemaOptions {
  readonly database: string;
  /** None: a single node. */
  readonly cluster: string | undefined;
  readonly retentionDays: number;
}

export interface Migration {
  readonly version: number;
  /** That do nothing where they were done before. */
  readonly statements: readonly string[];
}

/** ClickHouse counts the seconds of a TTL in 32 bits, up to 2106: what goes further would be dropped at once. */
const MAX_TTL_DAYS = 18_250;

/** Statements that make sure there is a database, and a table that tells the version of what is in it. */
export function versionStatements(options: SchemaOptions): string[] {
  return [`create database if not exists ${options.database}${onCluster(options)}`, fill('version', options)];
}

/** The oldest first. */
export function migrations(options: SchemaOptions): Migration[] {
  const template = options.cluster === undefined ? 'log-table' : 'log-table-cluster';
  return [{ version: 1, statements: LOG_KINDS.flatMap(kind => split(fill(template, options, kind))) }];
}

/** Statements that give tables which are there already the retention of today. `expiring` have a TTL now. */
export function retentionStatements(options: SchemaOptions, expiring: ReadonlySet<string>): string[] {
  const kinds = hasTtl(options)
    ? LOG_KINDS
    : LOG_KINDS.filter(kind => expiring.has(storedTable(kind, options)));
  return kinds.map(kind => fill('retention', options, kind));
}

/** Everything, to be read or piped into clickhouse-client. */
export function printSchema(options: SchemaOptions): string {
  const statements = [
    ...versionStatements(options),
    ...migrations(options).flatMap(({ version, statements }) => [
      ...statements,
      noteVersion(options, version),
    ]),
  ];
  return statements.map(statement => `${statement};\n`).join('\n');
}

export function noteVersion({ database }: SchemaOptions, version: number): string {
  return `insert into ${database}.dendro_schema (version) values (${version})`;
}

export function optionsOf({ database, cluster }: ClickHouseUrl, retentionDays: number): SchemaOptions {
  return { database, cluster, retentionDays };
}

function fill(template: string, options: SchemaOptions, kind?: LogKind): string {
  const { database, cluster, retentionDays } = options;
  const table = `${kind}_logs`;
  const ttl = `ttl toDateTime(intDiv(timestamp, 1000000), 'UTC') + toIntervalDay(${retentionDays})`;
  // One table for the whole cluster: every server is a replica of it, whatever its shard.
  const versionPath = `'/clickhouse/tables/all/${database}/dendro_schema', '{shard}-{replica}'`;
  const values: Readonly<Record<string, string>> = {
    database,
    table,
    stored_table: kind === undefined ? '' : storedTable(kind, options),
    path: `${database}/${table}`,
    cluster: cluster ?? '',
    on_cluster: onCluster(options),
    columns: kind === undefined ? '' : tableColumns(kind),
    ttl: hasTtl(options) ? ttl : '',
    change_ttl: hasTtl(options) ? `modify ${ttl}` : 'remove ttl',
    version_engine: cluster === undefined ? 'MergeTree' : `ReplicatedMergeTree(${versionPath})`,
  };
  const text = readFileSync(new URL(`schema/${template}.sql`, import.meta.url), 'utf8');
  return text
    .replace(/^--.*\n/gm, '')
    .replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? '')
    .trim();
}

function tableColumns(kind: LogKind): string {
  return columnsOf(kind)
    .map(({ name, clickhouse }) => `${name} ${clickhouse}`)
    .join(',\n  ');
}

function hasTtl({ retentionDays }: SchemaOptions): boolean {
  return retentionDays <= MAX_TTL_DAYS;
}

function storedTable(kind: LogKind, { cluster }: SchemaOptions): string {
  return cluster === undefined ? `${kind}_logs` : `${kind}_logs_local`;
}

function onCluster({ cluster }: SchemaOptions): string {
  return cluster === undefined ? '' : ` on cluster '${cluster}'`;
}

function split(text: string): string[] {
  return text.split(/;\n\s*/);
}
