// Whether two stores answer alike: every endpoint over a grid of its parameters, asked of both as of the same moment.

import { formatTimestamp } from '../domain/timestamp.ts';
import type { Cell, Column, Store } from '../store/store.ts';
import { MICROS_PER_SECOND } from '../system/clock.ts';
import type { Catalog } from './catalog.ts';
import type { EndpointDefinition, Parameter } from './definition.ts';
import { runEndpoint } from './run-endpoint.ts';

export interface Side {
  readonly store: Store;
  /** With the SQL of that store. */
  readonly catalog: Catalog;
}

export interface Difference {
  readonly endpoint: string;
  readonly parameters: string;
  readonly what: string;
}

export interface Parity {
  readonly asked: number;
  /** Rows of all answers of the first store. */
  readonly rows: number;
  readonly differences: readonly Difference[];
}

/** Sums of doubles depend on their order in the last digits. */
const RELATIVE_TOLERANCE = 1e-9;

export async function compareStores(
  one: Side,
  other: Side,
  projects: readonly string[],
  now: bigint,
): Promise<Parity> {
  const differences: Difference[] = [];
  let [asked, rows] = [0, 0];
  for (const endpoint of one.catalog.endpoints) {
    const { name } = endpoint.definition;
    const twin = other.catalog.find(name);
    if (twin === undefined) continue;
    for (const parameters of gridOf(endpoint.definition, projects, now)) {
      const [mine, theirs] = await Promise.all([
        runEndpoint({ store: one.store, clock: () => now }, endpoint, { parameters }),
        runEndpoint({ store: other.store, clock: () => now }, twin, { parameters }),
      ]);
      asked++;
      rows += mine.value.result.rows.length;
      const what = findDifference(endpoint.query.columns, mine.value.result.rows, theirs.value.result.rows);
      if (what !== undefined) differences.push({ endpoint: name, parameters: parameters.toString(), what });
    }
  }
  return { asked, rows, differences };
}

/** Every combination of what each parameter may be. */
function gridOf(
  { parameters }: EndpointDefinition,
  projects: readonly string[],
  now: bigint,
): URLSearchParams[] {
  let grid: [string, string][][] = [[]];
  for (const [name, rule] of Object.entries(parameters)) {
    const values = valuesOf(rule, projects, now);
    grid = grid.flatMap(point => values.map(value => [...point, [name, value] as [string, string]]));
  }
  return grid.map(point => new URLSearchParams(point.filter(([, value]) => value !== '')));
}

function valuesOf(rule: Parameter, projects: readonly string[], now: bigint): readonly string[] {
  if (rule.type === 'choice') return Object.keys(rule.choices);
  if (rule.type === 'timestamp')
    return ['', ...[86_400n, 3_600n].map(age => formatTimestamp(now - age * MICROS_PER_SECOND))];
  if (rule.type === 'pattern') return projects.map(project => project.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return rule.required ? projects : [''];
}

function findDifference(
  columns: readonly Column[],
  mine: readonly (readonly Cell[])[],
  theirs: readonly (readonly Cell[])[],
): string | undefined {
  if (mine.length !== theirs.length) return `${mine.length} rows here, ${theirs.length} there`;
  for (const [index, row] of mine.entries()) {
    for (const [place, { name, type }] of columns.entries()) {
      const [a, b] = [row[place] ?? null, theirs[index]?.[place] ?? null];
      const isEqual = type === 'number' ? isClose(a, b) : a === b;
      if (!isEqual) return `row ${index + 1}, ${name}: ${a} here, ${b} there`;
    }
  }
  return undefined;
}

function isClose(a: Cell, b: Cell): boolean {
  if (a === null || b === null) return a === b;
  return Math.abs(Number(a) - Number(b)) <= RELATIVE_TOLERANCE * Math.abs(Number(a));
}
