// One process that loads a file of records with DuckDB alone, `insert … from read_json(file)`, into the tables that Dendro
// uses, opened with the settings that Dendro uses. Call: node read-json-process.mjs DATA-FOLDER FILE. Prints one line.
import { linkSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../dist/store/duckdb/open-database.js';
import { nameOf, Parts } from '../../dist/store/duckdb/parts.js';

const [dataFolder, file] = process.argv.slice(2);
const database = await openDatabase(dataFolder, '500MB');
const readable = join(database.intakeDirectory, 'sent.ndjson');
linkSync(file, readable);
const connection = await database.connect();
const [table] = (await Parts.open(connection)).list('edge');
const start = performance.now();
await connection.run(
  `insert into ${nameOf(table)} by name
  select id, make_timestamp(timestamp) as timestamp, project, event_message, metadata,
    metadata->>'$.request.url' as url, metadata->>'$.request.path' as path
  from read_json($file, format = 'newline_delimited', columns = {
    id: 'VARCHAR', timestamp: 'BIGINT', project: 'VARCHAR', event_message: 'VARCHAR', metadata: 'JSON'
  })`,
  { file: readable },
);
await connection.run('checkpoint logs');
const ms = performance.now() - start;
connection.closeSync();
database.instance.closeSync();
process.stdout.write(`result: ${JSON.stringify({ ms })}\n`);
