// Teaches a DuckDB connection to make records: the tables, macros and views of records.sql, in the database it uses.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listProjects } from './projects.mjs';

export async function openRecords(connection, { steady, startMicros, spanMicros }) {
  const bySize = listProjects();
  const projects = [...bySize, ...steady.map(({ project }) => project)].sort();
  const placeOf = name => `${projects.indexOf(name) + 1}::smallint`;
  const rows = steady.map(
    ({ project, records }) => `{place: ${placeOf(project)}, records: ${records}::bigint}`,
  );
  await connection.run(`set variable projects = [${projects.map(name => `'${name}'`)}]`);
  await connection.run(`set variable by_size = [${bySize.map(placeOf)}]`);
  await connection.run(`set variable steady = [${rows}]`);
  await connection.run(`set variable start_micros = ${startMicros}::bigint`);
  await connection.run(`set variable span_micros = ${spanMicros}::bigint`);
  await connection.run(readFileSync(join(import.meta.dirname, 'records.sql'), 'utf8'));
}

/** Puts these records into the table `numbers`; the views edge_records and function_edge_records make them from it. */
export async function numberRecords(connection, { kind, perKind, part, parts, order = 'micros' }) {
  await connection.run('truncate numbers');
  await connection.run(
    `insert into numbers from numbered('${kind}', ${perKind}, ${part}, ${parts}) order by ${order}`,
  );
}
