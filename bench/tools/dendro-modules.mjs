// The only file of the benchmark that imports Dendro's own modules: values come from the built files in dist/, types from
// src/, so that type checking does not need a build.

/** @type {typeof import('../../src/app.ts')} */
export const { startApp } = await load('app.js');
/** @type {typeof import('../../src/cli/commands.ts')} */
const { commands } = await load('cli/commands.js');
/** @type {typeof import('../../src/config.ts')} */
const { readInvocation, readServeConfig } = await load('config.js');
/** @type {typeof import('../../src/endpoint/catalog.ts')} */
export const { loadCatalog } = await load('endpoint/catalog.js');
/** @type {typeof import('../../src/endpoint/parameters.ts')} */
export const { bindParameters, addContextValues } = await load('endpoint/parameters.js');
/** @type {typeof import('../../src/domain/log-line.ts')} */
export const { toLogLines } = await load('domain/log-line.js');
/** @type {typeof import('../../src/intake/parse-body.ts')} */
export const { parseBody } = await load('intake/parse-body.js');
/** @type {typeof import('../../src/logs/otlp-protobuf.ts')} */
export const { decodeOtlpProtobuf } = await load('logs/otlp-protobuf.js');
/** @type {typeof import('../../src/logs/otlp-record.ts')} */
export const { toIntakeRecords } = await load('logs/otlp-record.js');
/** @type {typeof import('../../src/store/duckdb/checksum.ts')} */
export const { readContent, ROW_GROUP_ROWS } = await load('store/duckdb/checksum.js');
/** @type {typeof import('../../src/store/duckdb/staging.ts')} */
export const { memoryTableColumns, tableColumns } = await load('store/duckdb/staging.js');
/** @type {typeof import('../../src/store/duckdb/database.ts')} */
export const { openDatabase } = await load('store/duckdb/database.js');
/** @type {typeof import('../../src/store/duckdb/field-columns.ts')} */
export const { selectWithFieldColumns } = await load('store/duckdb/field-columns.js');
/** @type {typeof import('../../src/store/duckdb/manifest.ts')} */
export const { readManifest } = await load('store/duckdb/manifest.js');
/** @type {typeof import('../../src/store/duckdb/part-writer.ts')} */
export const { PartWriter } = await load('store/duckdb/part-writer.js');
/** @type {typeof import('../../src/store/duckdb/parts.ts')} */
export const { Parts } = await load('store/duckdb/parts.js');
/** @type {typeof import('../../src/store/duckdb/time-windows.ts')} */
export const { windowOf } = await load('store/duckdb/time-windows.js');
/** @type {typeof import('../../src/store/open-store.ts')} */
export const { openStore } = await load('store/open-store.js');

/** @param {string} path */
function load(path) {
  return import(new URL(`../../dist/${path}`, import.meta.url).href);
}

/**
 * The configuration of `dendro serve` with these flags, for servers that run inside a process of the benchmark.
 * @param {string[]} args @param {string} apiKey
 */
export function createServeConfig(args, apiKey) {
  const serve = commands.find(({ name }) => name === 'serve');
  if (serve === undefined) throw new Error('the command `serve` does not exist');
  const ports = ['--port', '0', '--internal-port', '0'];
  return readServeConfig(readInvocation([...ports, ...args], { DENDRO_API_KEY: apiKey }, serve.flags));
}

/**
 * An observer that ends the process on the first error event: figures measured during an error are wrong.
 * @param {object} event
 */
export function throwOnError(event) {
  if ('error' in event) throw event.error;
}
