// One process that loads a file of records with DuckDB's read_json into Dendro's tables, with Dendro's settings but without
// validation and sorting. Usage: node read-json-process.mjs DATA-DIRECTORY FILE. Prints one line
// `result: …`.
import { linkSync } from 'node:fs';
import { join } from 'node:path';
import { nameOfPart, openDatabase, Parts } from '../tools/dendro-modules.mjs';

const [dataDirectory, file] = process.argv.slice(2);
const database = await openDatabase({ dataDirectory, memoryLimit: '500MB' });
const readable = join(database.stagingDirectory, 'sent.ndjson'); // DuckDB may read files in this directory only
linkSync(file, readable);
const connection = await database.connect();
const [part] = (await Parts.open(connection, database.syncDirectory)).list('edge');
if (part === undefined) throw new Error('the new store has no part for edge records');
const start = performance.now();
await connection.run(
  `insert into ${nameOfPart(part)} by name
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
database.close();
process.stdout.write(`result: ${JSON.stringify({ ms })}\n`);
