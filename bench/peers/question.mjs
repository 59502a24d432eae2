// A call of an endpoint, as those need it who are asked in SQL: the store's own text and the value of every parameter.
import { join } from 'node:path';
import { loadCatalog } from '../../dist/endpoint/catalog.js';
import { bindParameters, completeValues } from '../../dist/endpoint/parameters.js';

const builtIn = join(import.meta.dirname, '..', '..', 'endpoints');
const catalogs = new Map();

export function sqlOf(storeName, endpoint) {
  if (!catalogs.has(storeName))
    catalogs.set(storeName, loadCatalog({ builtIn, custom: undefined }, storeName));
  return catalogs.get(storeName).find(endpoint).query.sql;
}

/** Each as type and value, whole numbers as text; the time of the call is now. */
export function valuesOf({ endpoint, parameters, pinnedProject }) {
  sqlOf('duckdb', endpoint);
  const { definition } = catalogs.get('duckdb').find(endpoint);
  const bound = bindParameters(definition, new URLSearchParams(parameters));
  const values = completeValues(bound, BigInt(Date.now()) * 1000n, pinnedProject);
  return Object.fromEntries(
    Object.entries(values).map(([name, { type, value }]) => [
      name,
      { type, value: typeof value === 'bigint' ? String(value) : value },
    ]),
  );
}
