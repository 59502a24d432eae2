// The tables of the store's file that are not parts, and the upgrade of files that an earlier version wrote. Old names of tables
// appear in this file only, except for those of temporary tables (parts.ts).
import { OperatorError } from '../../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { DuckDBConnection } from './driver.ts';
import { CREATE_LOADS_SQL } from './loads.ts';
import { CREATE_PART_CHECKSUMS_SQL } from './part-checksums.ts';
import { createViewSql } from './parts.ts';

const SCHEMA_VERSION = 4;

/** In order. Each runs on files with a lower schema version than its own. */
const UPGRADES: readonly { readonly version: number; run(connection: DuckDBConnection): Promise<void> }[] = [
  { version: 3, run: renameToFirstPart },
  { version: 4, run: renameTables },
];

/** Creates or upgrades the schema in one transaction, so that an interrupted upgrade leaves the file as it was. */
export async function applySchema(connection: DuckDBConnection, dataDirectory: string): Promise<void> {
  await connection.run('begin transaction');
  await connection.run('create table if not exists logs.schema_version (version integer not null)');
  const newest = await connection.runAndReadAll('select max(version) from logs.schema_version');
  const found = newest.value(0, 0);
  if (found !== null) await upgrade(connection, Number(found), dataDirectory);
  // The sequence number up to which each kind is flushed (exclusive). Updated in the transaction of each flush: after a crash,
  // the replay of the spool resumes there. `records` is an on-disk name from earlier versions; it is not a count.
  await connection.run(
    'create table if not exists logs.flushed_records (kind varchar primary key, records bigint not null)',
  );
  await connection.run(CREATE_LOADS_SQL);
  await connection.run(CREATE_PART_CHECKSUMS_SQL);
  if (Number(found) < SCHEMA_VERSION)
    await connection.run('insert into logs.schema_version values ($1)', [SCHEMA_VERSION]);
  await connection.run('commit');
}

/** Throws an OperatorError if a newer version of Dendro has written the attached file. */
export async function checkSchemaVersion(connection: DuckDBConnection, dataDirectory: string): Promise<void> {
  const tables = await listTables(connection);
  if (!tables.includes('schema_version')) return;
  const newest = await connection.runAndReadAll('select max(version) from logs.schema_version');
  refuseNewer(Number(newest.value(0, 0)), dataDirectory);
}

function refuseNewer(from: number, dataDirectory: string): void {
  if (from > SCHEMA_VERSION)
    throw new OperatorError(
      `the store in ${dataDirectory} has schema version ${from}, but this version of Dendro supports at most ${SCHEMA_VERSION}; use a newer version`,
    );
}

async function upgrade(connection: DuckDBConnection, from: number, dataDirectory: string): Promise<void> {
  refuseNewer(from, dataDirectory);
  for (const { version, run } of UPGRADES) if (from < version) await run(connection);
}

/**
 * Schema versions 1 and 2 had one table for each kind, <kind>_logs. It becomes a part, because <kind>_logs is the name of a view
 * since version 3. The part gets its name of version 3; renameTables then renames it and creates the views.
 */
async function renameToFirstPart(connection: DuckDBConnection): Promise<void> {
  const tables = (await listTables(connection)).filter(table => table.endsWith('_logs'));
  for (const [index, table] of tables.entries()) {
    const renamed = table.replace(/_logs$/, `_sealed_${index + 1}`);
    await connection.run(`alter table logs.${table} rename to ${renamed}`);
  }
}

/** Schema version 3 called parts "sealed" and compacted parts "merged". Renames them and creates the views. */
async function renameTables(connection: DuckDBConnection): Promise<void> {
  for (const table of await listTables(connection)) {
    const renamed = table.replace(/_sealed_(\d+)$/, '_part_$1').replace(/_merged_(\d+)$/, '_compacted_$1');
    if (table === 'sealed_records')
      await connection.run('alter table logs.sealed_records rename to flushed_records');
    else if (table !== renamed) await connection.run(`alter table logs.${table} rename to ${renamed}`);
  }
  const tables = await listTables(connection);
  for (const kind of LOG_KINDS) {
    const parts = tables.filter(table => new RegExp(`^${kind}_(part|compacted)_\\d+$`).test(table));
    const numberOf = (table: string) => Number(/\d+$/.exec(table)?.[0]);
    parts.sort((a, b) => numberOf(a) - numberOf(b));
    if (parts.length > 0) await connection.run(createViewSql(kind, parts));
  }
}

/** The names of the table with the flushed sequence numbers: in this schema version, and in version 3. */
export const FLUSHED_TABLES: readonly string[] = ['flushed_records', 'sealed_records'];

/** The kind whose records a table has, in any version of the schema. Undefined for other tables and temporary ones. */
export function kindOfTable(table: string): LogKind | undefined {
  const name = /^(\w+)_(?:logs|(?:part|compacted|sealed|merged)_\d+)$/.exec(table)?.[1];
  return LOG_KINDS.find(kind => kind === name);
}

async function listTables(connection: DuckDBConnection): Promise<string[]> {
  const result = await connection.runAndReadAll(
    "select table_name from duckdb_tables() where database_name = 'logs'",
  );
  return result.getRows().map(([name]) => String(name));
}
