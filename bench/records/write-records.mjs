// One process that writes records to a file or a pipe, a part of the platform after the other, in the order of time.
// Call: node write-records.mjs '{"perKind":…,"kind":…,"shape":…,"file":…,…}' (platform.mjs puts it together).
import { DuckDBInstance } from '@duckdb/node-api';
import { numberRecords, openRecords } from './open-records.mjs';

const { perKind, kind, shape, file, parts, first, ...platform } = JSON.parse(process.argv[2]);

const LINE = `concat('{"id":"', id, '","timestamp":', micros::varchar, ',"project":"', project,
  '","event_message":"', event_message, '","metadata":', metadata, '}')`;

/** What each system reads. No text in the records needs escaping in any of them. */
const COLUMNS = {
  ndjson: LINE,
  clickhouse: '*',
  postgres: `id, ${LINE}, event_message, make_timestamp(micros)`,
};

const instance = await DuckDBInstance.create(':memory:', { threads: '2', memory_limit: '1GB' });
const connection = await instance.connect();
await openRecords(connection, platform);
for (let part = first; part < parts; part++) {
  await numberRecords(connection, { kind, perKind, part, parts });
  await connection.run(
    `copy (select ${COLUMNS[shape]} from ${kind}_records)
    to '${file}' (format csv, header false, delimiter '\t', quote '', escape '', use_tmp_file false)`,
  );
  process.stdout.write(`${Math.round(((part + 1 - first) / (parts - first)) * 100)} %\n`);
}
