// The statements that create the tables of a ClickHouse store, for a single node or for a cluster. Generated from the
// templates in schema/*.sql, the columns in domain/log-columns.ts and field-columns.ts. apply-schema.ts runs them.
import { readFileSync } from 'node:fs';
import { LOG_KINDS, type LogKind, lineColumnsOf } from '../../domain/log-columns.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { fieldColumnDefinitions } from './field-columns.ts';

export interface SchemaOptions {
  readonly database: string;
  /** Undefined for a single node. */
  readonly cluster: string | undefined;
  readonly retentionDays: number;
}

export interface Migration {
  readonly version: number;
  /** Safe to repeat: a second run changes nothing. */
  readonly statements: readonly string[];
}

/**
 * 50 years. ClickHouse computes the time of expiry in 32-bit Unix seconds, which overflow in 2106: a record that should expire
 * after that would expire at once. So tables with a longer retention have no TTL.
 */
const MAX_TTL_DAYS = 18_250;

/** Statements that create the database and the table of applied migrations. */
export function versionStatements(options: SchemaOptions): string[] {
  const createDatabase = `create database if not exists ${options.database}${onCluster(options)}`;
  return [createDatabase, fillTemplate('version', options)];
}

/** From the oldest to the newest. The table dendro_schema lists those that were applied. */
export function migrations(options: SchemaOptions): Migration[] {
  const template = options.cluster === undefined ? 'log-table' : 'log-table-cluster';
  const createTables = LOG_KINDS.flatMap(kind => splitStatements(fillTemplate(template, options, kind)));
  // New tables have these columns. Tables of version 1 that were created earlier do not.
  const addFieldColumns = LOG_KINDS.flatMap(kind => addFieldColumnsStatements(kind, options));
  return [
    { version: 1, statements: createTables },
    { version: 2, statements: addFieldColumns },
  ];
}

/** Statements that set the TTL of existing tables to the current retention, or remove it. */
export function retentionStatements(options: SchemaOptions, tablesWithTtl: ReadonlySet<string>): string[] {
  const kinds = hasTtl(options)
    ? LOG_KINDS
    : LOG_KINDS.filter(kind => tablesWithTtl.has(storageTable(kind, options)));
  return kinds.map(kind => fillTemplate('retention', options, kind));
}

/**
 * The statements for a new database as one text, for reading or for clickhouse-client. They do not change the TTL of
 * existing tables.
 */
export function renderSchema(options: SchemaOptions): string {
  const statements = [
    ...versionStatements(options),
    ...migrations(options).flatMap(({ version, statements }) => [
      ...statements,
      insertVersion(options, version),
    ]),
  ];
  return statements.map(statement => `${statement};\n`).join('\n');
}

export function insertVersion({ database }: SchemaOptions, version: number): string {
  return `insert into ${database}.dendro_schema (version) values (${version})`;
}

export function toSchemaOptions({ database, cluster }: ClickHouseUrl, retentionDays: number): SchemaOptions {
  return { database, cluster, retentionDays };
}

/** Fills schema/<template>.sql. `kind` is undefined only for `version`, the template without a table of a log kind. */
function fillTemplate(template: string, options: SchemaOptions, kind?: LogKind): string {
  const { database, cluster, retentionDays } = options;
  const table = `${kind}_logs`;
  const ttl = `ttl toDateTime(intDiv(timestamp, 1000000), 'UTC') + toIntervalDay(${retentionDays})`;
  // Every server of the cluster is a replica of dendro_schema, whatever its shard.
  const versionReplica = `'/clickhouse/tables/all/${database}/dendro_schema', '{shard}-{replica}'`;
  const values: Readonly<Record<string, string>> = {
    database,
    table,
    storage_table: kind === undefined ? '' : storageTable(kind, options),
    keeper_path: `${database}/${table}`,
    cluster: cluster ?? '',
    on_cluster: onCluster(options),
    columns: kind === undefined ? '' : tableColumns(kind),
    ttl: hasTtl(options) ? ttl : '',
    change_ttl: hasTtl(options) ? `modify ${ttl}` : 'remove ttl',
    version_engine: cluster === undefined ? 'MergeTree' : `ReplicatedMergeTree(${versionReplica})`,
  };
  const text = readFileSync(new URL(`schema/${template}.sql`, import.meta.url), 'utf8');
  return text
    .replace(/^ *--.*\n/gm, '')
    .replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? '')
    .trim();
}

function tableColumns(kind: LogKind): string {
  const lineColumns = lineColumnsOf(kind).map(({ name, clickhouse }) => `${name} ${clickhouse}`);
  return [...lineColumns, ...fieldColumnDefinitions(kind)].join(',\n  ');
}

/** The Distributed table of a cluster comes last: its columns must exist in the tables of the shards. */
function addFieldColumnsStatements(kind: LogKind, options: SchemaOptions): string[] {
  const tables = new Set([storageTable(kind, options), `${kind}_logs`]);
  const additions = fieldColumnDefinitions(kind).map(definition => `add column if not exists ${definition}`);
  return [...tables].map(
    table => `alter table ${options.database}.${table}${onCluster(options)}\n  ${additions.join(',\n  ')}`,
  );
}

function hasTtl({ retentionDays }: SchemaOptions): boolean {
  return retentionDays <= MAX_TTL_DAYS;
}

/** On a cluster the records are in local tables, and the table that queries use is Distributed. */
export function storageTable(kind: LogKind, { cluster }: Pick<SchemaOptions, 'cluster'>): string {
  return cluster === undefined ? `${kind}_logs` : `${kind}_logs_local`;
}

export function onCluster({ cluster }: Pick<SchemaOptions, 'cluster'>): string {
  return cluster === undefined ? '' : ` on cluster '${cluster}'`;
}

function splitStatements(text: string): string[] {
  return text.split(/;\n\s*/);
}
