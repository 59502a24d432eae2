// Generates records inside DuckDB, with the tables, macros and views of records.sql.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listProjects } from './dataset.mjs';

/** @import { DuckDBConnection } from '@duckdb/node-api' */
/** @import { Dataset } from '../types.ts' */

/**
 * Creates the generator in the current database of the connection.
 * @param {DuckDBConnection} connection @param {Omit<Dataset, 'perKind'>} dataset
 */
export async function createGenerator(connection, { fixedProjects, startMicros, spanMicros }) {
  const bySize = listProjects();
  const projects = [...bySize, ...fixedProjects.map(({ project }) => project)].sort();
  /** @param {string} name */
  const toIndex = name => `${projects.indexOf(name) + 1}::smallint`;
  const fixed = fixedProjects.map(
    ({ project, records }) => `{project_index: ${toIndex(project)}, records: ${records}::bigint}`,
  );
  await connection.run(`set variable projects = [${projects.map(name => `'${name}'`)}]`);
  await connection.run(`set variable by_size = [${bySize.map(toIndex)}]`);
  await connection.run(`set variable fixed_projects = [${fixed}]`);
  await connection.run(`set variable start_micros = ${startMicros}::bigint`);
  await connection.run(`set variable span_micros = ${spanMicros}::bigint`);
  await connection.run(readFileSync(join(import.meta.dirname, 'records.sql'), 'utf8'));
}

/**
 * Selects the records that the views edge_records and function_edge_records return: one of `chunks` slices of time.
 * @param {DuckDBConnection} connection
 * @param {{ kind: string, perKind: number, chunk: number, chunks: number, order?: string }} options
 */
export async function selectChunk(connection, { kind, perKind, chunk, chunks, order = 'micros' }) {
  await connection.run('truncate record_keys');
  await connection.run(
    `insert into record_keys from keys_of_chunk('${kind}', ${perKind}, ${chunk}, ${chunks}) order by ${order}`,
  );
}
