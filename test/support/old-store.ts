// Writes stores as earlier releases did. The names of tables and columns are those of earlier releases and never change.
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance, type DuckDBValue } from '@duckdb/node-api';

const FIRST_BLOCK = 3 * 4096;
const BLOCK_BYTES = 256 * 1024;

const COLUMNS = `id varchar not null, timestamp timestamp not null, project varchar not null,
  event_message varchar not null using compression zstd, metadata json not null using compression zstd`;
export const EDGE_COLUMNS = `${COLUMNS}, url varchar not null using compression zstd, path varchar not null`;

export const SCHEMA_4 = [
  'create table schema_version (version integer not null)',
  'insert into schema_version values (4)',
  'create table flushed_records (kind varchar primary key, records bigint not null)',
];

/** A SELECT of edge records, one in each minute since 2026-11-01, with ids e0, e1 and so on. */
export function edgeRecords(first: number, end: number): string {
  return `select 'e' || i as id, timestamp '2026-11-01' + to_minutes(i) as timestamp, 'p' || i % 7 as project,
    'GET | ' || 200 + i % 5 || ' | ' || md5(i::varchar) as event_message,
    json_object('request', json_object('method', 'GET'), 'response', json_object('status_code', 200 + i % 5), 'n', i) as metadata,
    'https://p.example/rest/v1/t' || i as url, '/rest/v1/t' || i as path from range(${first}, ${end}) numbers(i)`;
}

/** Runs statements on dendro.duckdb. `isKilled`: without a checkpoint, so that the write-ahead log stays. */
export async function changeOldStore(
  dataDirectory: string,
  statements: readonly string[],
  { isKilled = false } = {},
): Promise<void> {
  await withOldStore(dataDirectory, async connection => {
    if (isKilled) await connection.run('pragma disable_checkpoint_on_shutdown');
    for (const statement of statements) await connection.run(statement);
  });
}

export async function rowsOfOldStore(dataDirectory: string, sql: string): Promise<DuckDBValue[][]> {
  let rows: DuckDBValue[][] = [];
  await withOldStore(dataDirectory, async connection => {
    rows = (await connection.runAndReadAll(sql)).getRows();
  });
  return rows;
}

async function withOldStore(
  dataDirectory: string,
  use: (connection: DuckDBConnection) => Promise<void>,
): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await connection.run(
      `attach '${join(dataDirectory, 'dendro.duckdb')}' as logs (storage_version 'latest')`,
    );
    await connection.run('use logs');
    await use(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Overwrites a block that has records of this table and of no other. */
export async function damageTable(dataDirectory: string, table: string): Promise<void> {
  const blocks = `select block_id from pragma_storage_info('${table}') where block_id >= 0`;
  const others = "select table_name from duckdb_tables() where database_name = 'logs' and estimated_size > 0";
  const used: DuckDBValue[] = [];
  for (const [other] of await rowsOfOldStore(dataDirectory, others))
    if (other !== table)
      used.push(
        ...(
          await rowsOfOldStore(
            dataDirectory,
            `select block_id from pragma_storage_info('${other}') where block_id >= 0`,
          )
        ).flat(),
      );
  const own = (await rowsOfOldStore(dataDirectory, blocks)).flat().find(block => !used.includes(block));
  if (own === undefined) throw new Error(`${table} has no block of its own`);
  const descriptor = openSync(join(dataDirectory, 'dendro.duckdb'), 'r+');
  writeSync(descriptor, Buffer.alloc(64, 0x55), 0, 64, FIRST_BLOCK + Number(own) * BLOCK_BYTES + 1000);
  closeSync(descriptor);
}
