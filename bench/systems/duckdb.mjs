// DuckDB alone: a copy of Dendro's part files, opened with the same settings, that runs the endpoint's SQL in its own process.
import { join } from 'node:path';
import { THREAD_POOL } from './dendro.mjs';
import { readSql, readValues } from './endpoint-sql.mjs';

/** @import { System, Workspace } from '../types.ts' */

/**
 * @param {Workspace} workspace @param {string} directory @param {string} memoryLimit
 * @returns {Promise<System>}
 */
export async function startDuckDb(workspace, directory, memoryLimit) {
  const command = [process.execPath, join(import.meta.dirname, 'duckdb-process.mjs'), directory, memoryLimit];
  const { child, stop } = await workspace.start(command, /^(ready)$/, THREAD_POOL);
  return {
    name: 'duckdb',
    command: workspace.describe(command),
    query(request, withRows = false) {
      return new Promise((resolve, reject) => {
        child.once('message', (/** @type {any} */ message) =>
          message.error === undefined ? resolve(message) : reject(new Error(message.error)),
        );
        child.send({ sql: readSql('duckdb', request.endpoint), values: readValues(request), withRows });
      });
    },
    stop,
  };
}
