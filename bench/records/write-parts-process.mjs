// One process that writes generated records directly into parts of a DuckDB store, because `dendro ingest` would take many
// times as long. Records older than a week go into one compacted part, sorted as a whole. The last week goes into parts of four
// row groups, as `dendro ingest` writes them. compact-process.mjs then merges these.
// Usage: node write-parts-process.mjs DATA-DIRECTORY '{"perKind":…,…}'
import { nameOfPart, openDatabase, Parts, ROW_GROUP_ROWS } from '../tools/dendro-modules.mjs';
import { KINDS } from './dataset.mjs';
import { createGenerator, selectChunk } from './generate-records.mjs';

/** A part of this size gets no more rows: MAX_UNCOMPACTED_PART_ROWS in src/store/duckdb/parts.ts. */
const PART_ROWS = 4 * ROW_GROUP_ROWS;

const [dataDirectory, datasetText] = process.argv.slice(2);
const dataset = JSON.parse(datasetText);
const database = await openDatabase({ dataDirectory, memoryLimit: '2GB' });
const writer = await database.connect();
const generator = await database.instance.connect();
const parts = await Parts.open(writer, database.syncDirectory);
await createGenerator(generator, dataset);
const weekAgo = (Date.now() - 7 * 86_400_000) * 1000;
for (const kind of KINDS) {
  const order = 'project_index, micros desc';
  await selectChunk(generator, { kind, perKind: dataset.perKind, chunk: 0, chunks: 1, order });
  const { olderRows, starts } = await readRowGroupStarts();
  const firstYoungGroup = olderRows / ROW_GROUP_ROWS;
  if (olderRows > 0) await writePart(kind, true, `micros < ${starts[firstYoungGroup]}`);
  for (let group = firstYoungGroup; group < starts.length; group++) {
    const end = starts[group + 1] === undefined ? '' : `and micros < ${starts[group + 1]}`;
    await writePart(kind, false, `micros >= ${starts[group]} ${end}`);
  }
}
await writer.run('checkpoint logs');
for (const connection of [generator, writer]) connection.closeSync();
database.close();

/**
 * Returns how many records are older than a week, in whole parts, and the time at which each row group starts. Row groups
 * are cut by number of rows in order of time. A part that reaches into the last week belongs to that week.
 */
async function readRowGroupStarts() {
  /** @param {string} sql */
  const readRows = async sql => (await generator.runAndReadAll(sql)).getRows();
  const [[older]] = await readRows(`select count(*) from record_keys where micros < ${weekAgo}`);
  const starts = await readRows(
    `select micros from (select micros, row_number() over (order by micros) - 1 as position from record_keys)
    where position % ${ROW_GROUP_ROWS} = 0 order by position`,
  );
  return { olderRows: Number(older) - (Number(older) % PART_ROWS), starts: starts.flat() };
}

/** @param {'edge' | 'function_edge'} kind @param {boolean} isCompacted @param {string} condition */
async function writePart(kind, isCompacted, condition) {
  const open = await parts.transaction(() => parts.writablePart(kind));
  const part = isCompacted ? { ...open, isCompacted: true } : open;
  if (isCompacted) await parts.createTable(kind, nameOfPart(part));
  const { rowsChanged: rows } = await generator.run(
    `insert into ${nameOfPart(part)} by name
    select make_timestamp(micros) as timestamp, * exclude (micros) from ${kind}_records where ${condition}`,
  );
  await parts.transaction(() =>
    isCompacted ? parts.replace([open], { ...part, rows }) : parts.adjustRowCount(part, rows),
  );
}
