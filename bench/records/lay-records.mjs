// One process that writes a platform's records straight into the file of an embedded store, laid as `dendro ingest` leaves
// them when the store has come to rest: of each kind a table for this week, one for last week and one for all before, each
// sorted as a whole. Loading would take many times as long. Call: node lay-records.mjs DATA-FOLDER '{"perKind":…,…}'
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
  for (const between of cutByWeek(Date.now())) await layTable(kind, between);
}
await writer.run('checkpoint logs');
for (const connection of [maker, writer]) connection.closeSync();
database.instance.closeSync();

/** Weeks as the store counts them, from 1970 on. */
function cutByWeek(nowMs) {
  const week = 7 * 86_400_000_000;
  const thisWeek = Math.floor((nowMs * 1000) / week) * week;
  const cuts = [0, thisWeek - week, thisWeek, Number.MAX_SAFE_INTEGER];
  return [0, 1, 2].map(index => `micros >= ${cuts[index]} and micros < ${cuts[index + 1]}`);
}

async function layTable(kind, between) {
  const open = await sealedTables.change(() => sealedTables.openFor(kind));
  const found = await maker.runAndReadAll(`select count(*) from numbers where ${between}`);
  const merged = { ...open, isMerged: true, rows: Number(found.value(0, 0)) };
  await sealedTables.create(kind, nameOf(merged));
  await maker.run(
    `insert into ${nameOf(merged)} by name
    select make_timestamp(micros) as timestamp, * exclude (micros) from ${kind}_records where ${between}`,
  );
  await sealedTables.change(() => sealedTables.replace([open], merged));
}
