// One process that runs the endpoints' SQL with nothing in between: DuckDB opened as the service opens it, one
// connection. It is told what to run over its parent's channel and times it by itself,
// so that the channel is no part of the time.
import { BIGINT, DuckDBTimestampValue, TIMESTAMP, VARCHAR } from '@duckdb/node-api';
import { openDatabase } from '../../dist/store/duckdb/open-database.js';

const [dataFolder, memoryLimit] = process.argv.slice(2);
const database = await openDatabase(dataFolder, memoryLimit);
const connection = await database.connect();
await connection.run('use logs'); // the tables themselves, without the view in front of them

process.on('message', async ({ sql, values, wantsRows }) => {
  try {
    const { ms, rows } = await run(sql, values);
    process.send({ ms, rows: wantsRows ? rows.map(row => row.map(toPlain)) : undefined });
  } catch (error) {
    process.send({ error: error.message });
  }
});
process.on('disconnect', () => process.exit());
process.stdout.write('ready: direct\n');

/** Timed: preparing, binding, running, and reading every row into JavaScript values. */
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

const BINDINGS = {
  text: { duckdbType: VARCHAR, convert: value => value },
  integer: { duckdbType: BIGINT, convert: value => BigInt(value) },
  timestamp: { duckdbType: TIMESTAMP, convert: value => new DuckDBTimestampValue(BigInt(value)) },
};

function toPlain(value) {
  if (value instanceof DuckDBTimestampValue) return Number(value.micros);
  return typeof value === 'bigint' ? Number(value) : value;
}
