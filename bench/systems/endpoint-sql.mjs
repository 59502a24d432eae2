// The SQL of an endpoint and the parameter values of a request, for the systems that are queried in SQL.
import { join } from 'node:path';
import { addContextValues, bindParameters, loadCatalog } from '../tools/dendro-modules.mjs';

/** @import { BenchRequest } from '../types.ts' */

const root = join(import.meta.dirname, '..', '..');
const folders = {
  builtIn: join(root, 'endpoints'),
  packs: [join(root, 'packs', 'explore')],
  custom: undefined,
};
const catalogs = {
  duckdb: loadCatalog(folders, 'duckdb'),
  clickhouse: loadCatalog(folders, 'clickhouse'),
};

/** @param {'duckdb' | 'clickhouse'} storeName @param {string} endpoint */
export function readSql(storeName, endpoint) {
  return findEndpoint(storeName, endpoint).query.sql;
}

/**
 * Type and value of every parameter. Integers are text, so that they can be sent to another process. `now` is the current
 * time.
 * @param {BenchRequest} request
 * @returns {Record<string, { type: string, value: unknown }>}
 */
export function readValues({ endpoint, parameters, pinnedProject }) {
  const { definition } = findEndpoint('duckdb', endpoint);
  const bound = bindParameters(definition, new URLSearchParams(parameters));
  const pin = pinnedProject === undefined ? undefined : [pinnedProject];
  const values = addContextValues(definition, bound, BigInt(Date.now()) * 1000n, pin);
  return Object.fromEntries(
    Object.entries(values).map(([name, { type, value }]) => [
      name,
      { type, value: typeof value === 'bigint' ? String(value) : value },
    ]),
  );
}

/**
 * The condition of a search in the SQL of another system: every word occurs in the message or in the metadata.
 * @param {BenchRequest} request @param {(word: string) => string} toCondition
 */
export function joinWords({ parameters }, toCondition) {
  return parameters.query
    .split(' ')
    .map(word => `(${toCondition(word)})`)
    .join(' and ');
}

/** @param {'duckdb' | 'clickhouse'} storeName @param {string} name */
function findEndpoint(storeName, name) {
  const endpoint = catalogs[storeName].find(name);
  if (endpoint === undefined) throw new Error(`the endpoint ${name} does not exist`);
  return endpoint;
}
