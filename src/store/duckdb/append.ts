// Records into tables: each batch is staged as NDJSON in the intake folder and read from there by DuckDB, several times
// faster than handing rows over one by one. All batches of one call are one transaction.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import type { LogKind, LogRecord } from '../../log-record.ts';

const LIFTED_COLUMNS: Partial<Record<LogKind, string>> = {
  edge: ", url: 'VARCHAR', path: 'VARCHAR'",
  function_edge: ", function_id: 'VARCHAR', execution_time_ms: 'DOUBLE', status_code: 'INTEGER'",
};

/** Answers the timestamp of the newest record, in Unix microseconds. */
export async function appendRecords(
  connection: DuckDBConnection,
  intakeFolder: string,
  kind: LogKind,
  batches: AsyncIterable<readonly LogRecord[]>,
): Promise<bigint | undefined> {
  let newest: number | undefined;
  const stagingFile = join(intakeFolder, `${kind}.ndjson`);
  await connection.run('begin transaction');
  try {
    const insert = await connection.prepare(insertStatement(kind));
    for await (const records of batches) {
      await writeFile(stagingFile, records.map(toLine).join(''), { mode: 0o600 });
      insert.bind({ file: stagingFile });
      await insert.run();
      newest = records.reduce((latest, record) => Math.max(latest, record.timestampMicros), newest ?? 0);
    }
    await connection.run('commit');
    return newest === undefined ? undefined : BigInt(newest);
  } catch (error) {
    await connection.run('rollback').catch(() => {}); // a failed commit has rolled back already; the first error counts
    throw error;
  } finally {
    await rm(stagingFile, { force: true });
  }
}

function insertStatement(kind: LogKind): string {
  return `insert into ${kind}_logs by name
    select * replace (make_timestamp(timestamp) as timestamp)
    from read_json($file, format = 'newline_delimited', columns = {
      id: 'VARCHAR', timestamp: 'BIGINT', project: 'VARCHAR', event_message: 'VARCHAR', metadata: 'VARCHAR'
      ${LIFTED_COLUMNS[kind] ?? ''}
    })`;
}

function toLine(record: LogRecord): string {
  return `${JSON.stringify({
    id: record.id,
    timestamp: record.timestampMicros,
    project: record.project,
    event_message: record.eventMessage,
    metadata: record.metadata,
    ...record.lifted,
  })}\n`;
}
