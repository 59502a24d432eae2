// Reads every record of a copy of a store's file, also if an earlier version wrote it. DuckDB checks the checksum of each block that
// it reads. If a power cut left an unfinished write or checkpoint in the copy, this repairs it as the server does when it starts.
// Otherwise the file does not change.
import { join, resolve } from 'node:path';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { STORE_FILE } from '../../system/data-directory.ts';
import type { StoreContent } from '../store.ts';
import type { DuckDBConnection } from './driver.ts';
import { restoreMetadata } from './metadata-backup.ts';
import { createReaderInstance } from './open-database.ts';
import { attachRecovering, quote } from './recover-file.ts';
import { FLUSHED_TABLES, kindOfTable } from './schema.ts';

/** The caller must hold the lock of the data directory, or know that no other process uses it. */
export async function readCopy(dataDirectory: string, memoryLimit: string): Promise<StoreContent> {
  const instance = await createReaderInstance(memoryLimit);
  const connection = await instance.connect();
  try {
    const file = join(resolve(dataDirectory), STORE_FILE);
    await restoreMetadata(file);
    await attachRecovering(
      file,
      async () => {
        await connection.run(`attach ${quote(file)} as logs (read_only)`);
      },
      () => {}, // no report: the server reports the damage when it next opens the original file
    );
    return await readTables(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function readTables(connection: DuckDBConnection): Promise<StoreContent> {
  const records = new Map<LogKind, number>(LOG_KINDS.map(kind => [kind, 0]));
  const flushed = new Map<LogKind, number>();
  const tables = await connection.runAndReadAll(
    "select table_name from duckdb_tables() where database_name = 'logs'",
  );
  for (const [name] of tables.getRows()) {
    const table = String(name);
    // The hash needs every column of every row.
    const read = await connection.runAndReadAll(
      `select count(*), bit_xor(hash(row)) from logs.${table} as row`,
    );
    const kind = kindOfTable(table);
    if (kind !== undefined) records.set(kind, (records.get(kind) ?? 0) + Number(read.value(0, 0)));
    if (!FLUSHED_TABLES.includes(table)) continue;
    // The column `records` has the sequence number up to which the kind is flushed.
    const sequences = await connection.runAndReadAll(`select kind, records from logs.${table}`);
    for (const [flushedKind, sequence] of sequences.getRows())
      flushed.set(flushedKind as LogKind, Number(sequence));
  }
  return { records, durableUpTo: kind => flushed.get(kind) ?? 0 };
}
