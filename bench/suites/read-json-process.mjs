// One process that loads a file of records with DuckDB's read_json into Dendro's tables, with Dendro's settings but without
// validation and sorting. Usage: node read-json-process.mjs DATA-DIRECTORY FILE. Prints one line
// `result: …`.
import { linkSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase, selectWithFieldColumns, tableColumns } from '../tools/dendro-modules.mjs';

const [dataDirectory, file] = process.argv.slice(2);
const database = await openDatabase({ dataDirectory, memoryLimit: '500MB' });
const readable = join(database.stagingDirectory, 'sent.ndjson'); // DuckDB may read files in few directories only
linkSync(file, readable);
const connection = await database.connect();
await connection.run(
  `attach '${join(database.partsDirectory, 'loaded.duckdb')}' as loaded (storage_version 'latest')`,
);
await connection.run(`create table loaded.records (${tableColumns('edge')})`);
const start = performance.now();
await connection.run(
  `insert into loaded.records by name
  ${selectWithFieldColumns(
    'edge',
    `(select id, make_timestamp(timestamp) as timestamp, project, event_message, metadata,
      metadata->>'$.request.url' as url, metadata->>'$.request.path' as path
    from read_json($file, format = 'newline_delimited', columns = {
      id: 'VARCHAR', timestamp: 'BIGINT', project: 'VARCHAR', event_message: 'VARCHAR', metadata: 'JSON'
    }))`,
  )}`,
  { file: readable },
);
await connection.run('checkpoint loaded');
const ms = performance.now() - start;
connection.closeSync();
database.close();
process.stdout.write(`result: ${JSON.stringify({ ms })}\n`);
