// Compares the results of two stores: runs every endpoint that both have, with a grid of parameter values and the same current
// time.
import { formatTimestamp } from '../domain/timestamp.ts';
import { escapePattern } from '../store/condition-sql.ts';
import type { Cell, Column, Store, StoreName } from '../store/store.ts';
import { MICROS_PER_SECOND } from '../system/clock.ts';
import { type Catalog, listColumns } from './catalog.ts';
import type { EndpointDefinition } from './definition.ts';
import type { Parameter } from './parameter-definition.ts';
import { bindParameters } from './parameters.ts';
import { runEndpoint } from './run-endpoint.ts';

export interface ComparedStore {
  readonly store: Store;
  /** Loaded with the SQL files of this store. */
  readonly catalog: Catalog;
}

export interface Difference {
  readonly endpoint: string;
  readonly parameters: string;
  readonly description: string;
}

export interface Parity {
  /** How many requests ran on each store. An endpoint with pages runs several queries for one request. */
  readonly queries: number;
  /** Rows of all results of the first store. */
  readonly rows: number;
  readonly differences: readonly Difference[];
}

type Rows = readonly (readonly Cell[])[];

/** The last digits of a sum of doubles depend on the order in which the store adds the values. */
const RELATIVE_TOLERANCE = 1e-9;

export async function compareStores(
  first: ComparedStore,
  second: ComparedStore,
  projects: readonly string[],
  now: bigint,
): Promise<Parity> {
  const clock = () => now;
  const differences: Difference[] = [];
  let [queries, rows] = [0, 0];
  for (const endpoint of first.catalog.endpoints) {
    const { definition } = endpoint;
    const counterpart = second.catalog.find(definition.name);
    if (counterpart === undefined) continue;
    for (const parameters of createGrid(definition, projects, now)) {
      const values = bindParameters(definition, parameters);
      const [firstRun, secondRun] = await Promise.all([
        runEndpoint({ store: first.store, clock }, endpoint, values),
        runEndpoint({ store: second.store, clock }, counterpart, values),
      ]);
      queries++;
      rows += firstRun.value.rows.length;
      const description = findDifference(
        listColumns(definition),
        { store: first.store.name, rows: firstRun.value.rows },
        { store: second.store.name, rows: secondRun.value.rows },
      );
      if (description !== undefined)
        differences.push({ endpoint: definition.name, parameters: parameters.toString(), description });
    }
  }
  return { queries, rows, differences };
}

/** Of one endpoint. An endpoint with many parameters has thousands of combinations. */
const MAX_REQUESTS = 120;

/** The combinations of the grid values of all parameters, evenly chosen. An empty value means that the parameter is absent. */
function createGrid(
  { parameters }: EndpointDefinition,
  projects: readonly string[],
  now: bigint,
): URLSearchParams[] {
  let grid: [name: string, value: string][][] = [[]];
  for (const [name, parameter] of Object.entries(parameters)) {
    const values = listGridValues(parameter, projects, now);
    grid = grid.flatMap(point => values.map(value => [...point, [name, value] as [string, string]]));
  }
  const step = Math.max(1, grid.length / MAX_REQUESTS);
  const chosen = grid.filter((_, index) => Math.floor(index / step) > Math.floor((index - 1) / step));
  return chosen.map(point => new URLSearchParams(point.filter(([, value]) => value !== '')));
}

function listGridValues(parameter: Parameter, projects: readonly string[], now: bigint): readonly string[] {
  switch (parameter.type) {
    case 'choice':
      return Object.keys(parameter.choices);
    case 'timestamp': {
      const ages = [86_400n, 3_600n].map(seconds => seconds * MICROS_PER_SECOND);
      const times = ages.map(age => formatTimestamp(now - age));
      return parameter.required ? times : ['', ...times];
    }
    case 'pattern':
      return projects.map(escapePattern);
    case 'search':
      return parameter.required ? ['error -debug'] : ['', 'error -debug'];
    case 'field':
      return parameter.required ? ['status', 'metadata.level'] : ['', 'metadata.level'];
    case 'integer':
      return [String(parameter.default ?? parameter.min)];
    case 'boolean':
      return ['true', 'false'];
    case 'cursor':
      return [''];
    case 'text':
      return parameter.required ? projects : [''];
  }
}

/** Describes the first difference between the rows of two stores. */
function findDifference(
  columns: readonly Column[],
  first: { readonly store: StoreName; readonly rows: Rows },
  second: { readonly store: StoreName; readonly rows: Rows },
): string | undefined {
  if (first.rows.length !== second.rows.length)
    return `${first.store}: ${first.rows.length} rows, ${second.store}: ${second.rows.length} rows`;
  for (const [rowIndex, row] of first.rows.entries()) {
    for (const [columnIndex, { name, type }] of columns.entries()) {
      const [a, b] = [row[columnIndex] ?? null, second.rows[rowIndex]?.[columnIndex] ?? null];
      const isEqual = type === 'number' ? isClose(a, b) : a === b;
      if (!isEqual) return `row ${rowIndex + 1}, column ${name}; ${first.store}: ${a}, ${second.store}: ${b}`;
    }
  }
  return undefined;
}

function isClose(a: Cell, b: Cell): boolean {
  if (a === null || b === null) return a === b;
  return Math.abs(Number(a) - Number(b)) <= RELATIVE_TOLERANCE * Math.abs(Number(a));
}
