// One process that writes a platform's records straight into the file of an embedded store, laid as `dendro ingest` leaves
// them when the store has come to rest: one table of each kind, sorted as a whole. Loading would take many times as long.
// Call: node lay-records.mjs DATA-FOLDER '{"perKind":…,…}'
import { openDatabase } from '../../dist/store/duckdb/open-database.js';
import { nameOf, SealedTables } from '../../dist/store/duckdb/sealed-tables.js';
import { numberRecords, openRecords } from './open-records.mjs';
import { KINDS } from './platform.mjs';

const [dataFolder, platformText] = process.argv.slice(2);
const platform = JSON.parse(platformText);
const database = await openDatabase(dataFolder, '2GB');
const writer = await database.connect();
const maker = await database.instance.connect();
const sealedTables = await SealedTables.open(writer);
await openRecords(maker, platform);
for (const kind of KINDS) {
  await numberRecords(maker, {
    kind,
    perKind: platform.perKind,
    part: 0,
    parts: 1,
    order: 'place, micros desc',
  });
  const [empty] = sealedTables.of(kind);
  const merged = { ...empty, isMerged: true, rows: platform.perKind };
  await sealedTables.create(kind, nameOf(merged));
  await maker.run(
    `insert into ${nameOf(merged)} by name select make_timestamp(micros) as timestamp, * exclude (micros) from ${kind}_records`,
  );
  await sealedTables.change(() => sealedTables.replace([empty], merged));
}
await writer.run('checkpoint logs');
for (const connection of [maker, writer]) connection.closeSync();
database.instance.closeSync();
