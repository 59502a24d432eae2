// One process that runs SQL on Dendro's part files over one connection, each kind as one view of all its parts. The parent process
// sends the SQL; this process measures the time, so that messages between the two are not part of it. Usage: node
// duckdb-process.mjs DATA-DIRECTORY MEMORY-LIMIT
import { join } from 'node:path';
import { BIGINT, DuckDBTimestampValue, TIMESTAMP, VARCHAR } from '@duckdb/node-api';
import { openDatabase, readManifest } from '../tools/dendro-modules.mjs';

const [dataDirectory, memoryLimit] = process.argv.slice(2);
const database = await openDatabase({ dataDirectory, memoryLimit });
const connection = await database.connect();
await createViews();

process.on('message', async (/** @type {any} */ { sql, values, withRows }) => {
  try {
    const { ms, rows } = await run(sql, values);
    process.send?.({ ms, rows: withRows ? rows.map(row => row.map(toPlain)) : [] });
  } catch (error) {
    process.send?.({ error: String(error) });
  }
});
process.on('disconnect', () => process.exit());
process.stdout.write('ready\n');

async function createViews() {
  /** @type {Map<string, string[]>} */
  const tables = new Map();
  for (const { kind, file } of readManifest(dataDirectory)?.parts ?? []) {
    const alias = `part_${file.replaceAll(/\W/g, '_')}`;
    await connection.run(`attach '${join(database.partsDirectory, file)}' as ${alias} (read_only)`);
    tables.set(kind, [...(tables.get(kind) ?? []), `from ${alias}.records`]);
  }
  for (const [kind, selects] of tables)
    await connection.run(`create temp view ${kind}_logs as ${selects.join(' union all ')}`);
}

/**
 * The time covers preparing, binding, running, and reading every row into JavaScript values.
 * @param {string} sql @param {ReturnType<typeof import('./endpoint-sql.mjs').readValues>} values
 */
async function run(sql, values) {
  const start = performance.now();
  const statement = await connection.prepare(sql);
  for (let index = 1; index <= statement.parameterCount; index++) {
    const { type, value } = values[statement.parameterName(index)];
    const { duckdbType, convert } = BINDINGS[type];
    statement.bindValue(index, value === null ? null : convert(value), duckdbType);
  }
  const rows = (await statement.runAndReadAll()).getRows();
  const ms = performance.now() - start;
  statement.destroySync();
  return { ms, rows };
}

/** @type {Record<string, { duckdbType: import('@duckdb/node-api').DuckDBType, convert: (value: any) => any }>} */
const BINDINGS = {
  text: { duckdbType: VARCHAR, convert: value => value },
  integer: { duckdbType: BIGINT, convert: value => BigInt(value) },
  timestamp: { duckdbType: TIMESTAMP, convert: value => new DuckDBTimestampValue(BigInt(value)) },
};

/** @param {unknown} value */
function toPlain(value) {
  if (value instanceof DuckDBTimestampValue) return Number(value.micros);
  return typeof value === 'bigint' ? Number(value) : value;
}
