// What the suites of one run share: the workspace, which programs are missing, and the large data set.
import { join } from 'node:path';
import { ensurePrograms } from '../scripts/debian.mjs';
import { datasetFactory } from './records/dataset.mjs';
import { loadDendro } from './systems/dendro.mjs';
import { findPostgres } from './systems/postgres.mjs';

/** @import { Context, Workspace } from './types.ts' */

/**
 * @param {Workspace} workspace @param {import('./sizes.mjs').Sizes} sizes
 * @returns {Context}
 */
export function createContext(workspace, sizes) {
  const createDataset = datasetFactory(sizes.growth.perKind[0]);
  const largeDataset = createDataset(sizes.largeDataset.perKind);
  /** @type {Promise<string> | undefined} */
  let loading;
  return {
    workspace,
    createDataset,
    largeDataset,
    isMissing: findMissingPrograms(),
    loadLargeDataset(report) {
      const directory = join(workspace.directory, 'large');
      loading ??= loadDendro(workspace, directory, largeDataset, sizes.largeDataset, report).then(
        () => directory,
      );
      return loading;
    },
  };
}

function findMissingPrograms() {
  const missing = new Set(
    ensurePrograms({ wrk: ['wrk'], 'clickhouse-server': ['clickhouse-server'], psql: ['postgresql'] }),
  );
  return {
    wrk: missing.has('wrk'),
    clickhouse: missing.has('clickhouse-server'),
    postgres: missing.has('psql') || findPostgres() === undefined,
  };
}
