// The tables of the store's file that are not parts, and the upgrade of files that an earlier version wrote. Old on-disk
// names appear in this file only.
import { OperatorError } from '../../domain/errors.ts';
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { DuckDBConnection } from './driver.ts';
import { createViewSql } from './parts.ts';

const SCHEMA_VERSION = 4;

/** Each upgrades a file from the version before. */
const UPGRADES: readonly { readonly version: number; run(connection: DuckDBConnection): Promise<void> }[] = [
  { version: 3, run: splitTables },
  { version: 4, run: renameTables },
];

/** Creates or upgrades the schema in one transaction, so that an interrupted upgrade leaves the file as it was. */
export async function applySchema(connection: DuckDBConnection, dataDirectory: string): Promise<void> {
  await connection.run('begin transaction');
  await connection.run('create table if not exists logs.schema_version (version integer not null)');
  const newest = await connection.runAndReadAll('select max(version) from logs.schema_version');
  const found = newest.value(0, 0);
  if (found !== null) await upgrade(connection, Number(found), dataDirectory);
  // How many spooled records of each kind are in the file. Updated in the transaction that flushes them: after a crash,
  // the spool resumes from there.
  await connection.run(
    'create table if not exists logs.flushed_records (kind varchar primary key, records bigint not null)',
  );
  if (Number(found) < SCHEMA_VERSION)
    await connection.run('insert into logs.schema_version values ($1)', [SCHEMA_VERSION]);
  await connection.run('commit');
}

async function upgrade(connection: DuckDBConnection, from: number, dataDirectory: string): Promise<void> {
  if (from > SCHEMA_VERSION)
    throw new OperatorError(
      `the store in ${dataDirectory} has schema version ${from}, but this version of Dendro supports at most ${SCHEMA_VERSION}; use a newer version`,
    );
  for (const { version, run } of UPGRADES) if (from < version) await run(connection);
}

/** Versions 1 and 2 had one table for each kind, <kind>_logs. That is the name of a view since version 3. */
async function splitTables(connection: DuckDBConnection): Promise<void> {
  const tables = (await listTables(connection)).filter(table => table.endsWith('_logs'));
  for (const [index, table] of tables.entries()) {
    const renamed = table.replace(/_logs$/, `_sealed_${index + 1}`);
    await connection.run(`alter table logs.${table} rename to ${renamed}`);
  }
}

/** Version 3 called flushed parts "sealed", compacted parts "merged" and incomplete copies "merging". Creates the views. */
async function renameTables(connection: DuckDBConnection): Promise<void> {
  for (const table of await listTables(connection)) {
    const renamed = table.replace(/_sealed_(\d+)$/, '_part_$1').replace(/_merged_(\d+)$/, '_compacted_$1');
    if (/_merging_\d+$/.test(table)) await connection.run(`drop table logs.${table}`);
    else if (table === 'sealed_records')
      await connection.run('alter table logs.sealed_records rename to flushed_records');
    else if (table !== renamed) await connection.run(`alter table logs.${table} rename to ${renamed}`);
  }
  const tables = await listTables(connection);
  for (const kind of LOG_KINDS) {
    const parts = tables.filter(table => new RegExp(`^${kind}_(part|compacted)_\\d+$`).test(table));
    const numberOf = (table: string) => Number(/\d+$/.exec(table));
    parts.sort((a, b) => numberOf(a) - numberOf(b));
    if (parts.length > 0) await connection.run(createViewSql(kind, parts));
  }
}

async function listTables(connection: DuckDBConnection): Promise<string[]> {
  const reader = await connection.runAndReadAll(
    "select table_name from duckdb_tables() where database_name = 'logs'",
  );
  return reader.getRows().map(([name]) => String(name));
}
