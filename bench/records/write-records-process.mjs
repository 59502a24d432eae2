// One process that writes generated records to a file or a pipe, in order of time. stream-records.mjs starts it.
// Usage: node write-records-process.mjs '{"perKind":…,"kind":…,"format":…,"file":…,…}'
import { DuckDBInstance } from '@duckdb/node-api';
import { createGenerator, selectChunk } from './generate-records.mjs';

const { perKind, kind, format, file, chunks, first, ...dataset } = JSON.parse(process.argv[2]);

const NDJSON_LINE = `concat('{"id":"', id, '","timestamp":', micros::varchar, ',"project":"', project,
  '","event_message":"', event_message, '","metadata":', metadata, '}')`;

/**
 * The columns that each system reads. No text in the records needs escaping in any of the formats.
 * @type {Record<string, string>}
 */
const COLUMNS = {
  ndjson: NDJSON_LINE,
  clickhouse: '*',
  postgres: `id, ${NDJSON_LINE}, event_message, make_timestamp(micros)`,
};

const instance = await DuckDBInstance.create(':memory:', { threads: '2', memory_limit: '1GB' });
const connection = await instance.connect();
await createGenerator(connection, dataset);
for (let chunk = first; chunk < chunks; chunk++) {
  await selectChunk(connection, { kind, perKind, chunk, chunks });
  await connection.run(
    `copy (select ${COLUMNS[format]} from ${kind}_records)
    to '${file}' (format csv, header false, delimiter '\t', quote '', escape '', use_tmp_file false)`,
  );
  process.stdout.write(`${Math.round(((chunk + 1 - first) / (chunks - first)) * 100)} %\n`);
}
