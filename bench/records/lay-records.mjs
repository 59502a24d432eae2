// One process that writes a platform's records straight into the file of an embedded store: those older than a week in one
// table, sorted as a whole, as merging leaves them, and those of the last week as seals do. Loading would take many times as
// long. What is left to merge is done by settle-process.mjs. Call: node lay-records.mjs DATA-FOLDER '{"perKind":…,…}'
import { openDatabase } from '../../dist/store/duckdb/open-database.js';
import { nameOf, Parts, ROW_GROUP_ROWS } from '../../dist/store/duckdb/parts.js';
import { numberRecords, openRecords } from './open-records.mjs';
import { KINDS } from './platform.mjs';

/** As many as a table of seals gets. */
const TABLE_ROWS = 4 * ROW_GROUP_ROWS;

const [dataFolder, platformText] = process.argv.slice(2);
const platform = JSON.parse(platformText);
const database = await openDatabase(dataFolder, '2GB');
const writer = await database.connect();
const maker = await database.instance.connect();
const parts = await Parts.open(writer);
await openRecords(maker, platform);
const weekAgo = (Date.now() - 7 * 86_400_000) * 1000;
for (const kind of KINDS) {
  const order = 'place, micros desc';
  await numberRecords(maker, { kind, perKind: platform.perKind, part: 0, parts: 1, order });
  const [older, starts] = await cutTime();
  if (older > 0) await layTable(kind, true, `micros < ${starts[older / ROW_GROUP_ROWS]}`);
  for (let group = older / ROW_GROUP_ROWS; group < starts.length; group++) {
    const before = starts[group + 1] === undefined ? '' : `and micros < ${starts[group + 1]}`;
    await layTable(kind, false, `micros >= ${starts[group]} ${before}`);
  }
}
await writer.run('checkpoint logs');
for (const connection of [maker, writer]) connection.closeSync();
database.instance.closeSync();

/**
 * How many of the records are older than a week, in whole tables, and when each row group begins. Tables are cut by number of
 * rows, in the order of time; one that reaches into the last week is of that week.
 */
async function cutTime() {
  const read = async sql => (await maker.runAndReadAll(sql)).getRows();
  const [[old]] = await read(`select count(*) from numbers where micros < ${weekAgo}`);
  const starts = await read(
    `select micros from (select micros, row_number() over (order by micros) - 1 as place from numbers)
    where place % ${ROW_GROUP_ROWS} = 0 order by place`,
  );
  return [Number(old) - (Number(old) % TABLE_ROWS), starts.flat()];
}

async function layTable(kind, isCompacted, which) {
  const open = await parts.transaction(() => parts.writablePart(kind));
  const table = isCompacted ? { ...open, isCompacted } : open;
  if (isCompacted) await parts.createTable(kind, nameOf(table));
  const { rowsChanged: rows } = await maker.run(
    `insert into ${nameOf(table)} by name
    select make_timestamp(micros) as timestamp, * exclude (micros) from ${kind}_records where ${which}`,
  );
  await parts.transaction(() =>
    isCompacted ? parts.replace([open], { ...table, rows }) : parts.changeRows(table, rows),
  );
}
