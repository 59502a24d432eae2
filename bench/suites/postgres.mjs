// Suite `postgres`: Dendro over HTTP and PostgreSQL in Logflare's table layout, on the newest fifth of the large data set.
// With all records PostgreSQL would need minutes for each round.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pickProjects } from '../records/dataset.mjs';
import { comparisonTable, diskTable, formatCount } from '../report/tables.mjs';
import { createPinnedToken, loadDendro, serveDendro } from '../systems/dendro.mjs';
import { SETTINGS, startPostgres } from '../systems/postgres.mjs';
import { waitForAll } from '../tools/workspace.mjs';
import { listCases } from './cases.mjs';
import { compareSystems } from './compare-systems.mjs';

/** @import { Context, Report, Rounds, SuiteResults, System } from '../types.ts' */

const SHARE = 0.2;

/** @param {Context} context @param {Rounds & { quietSeconds: number }} sizes @param {Report} report */
export async function measurePostgres({ workspace, largeDataset }, sizes, report) {
  const directory = join(workspace.directory, 'small');
  const { middle } = pickProjects();
  /** @type {System[]} */
  const systems = [];
  try {
    await waitForAll([
      loadDendro(
        workspace,
        directory,
        largeDataset,
        { share: SHARE, quietSeconds: sizes.quietSeconds },
        report,
      ),
      startPostgres(workspace).then(postgres => {
        systems.push(postgres);
        return postgres.load(largeDataset, SHARE, report);
      }),
    ]);
    const tokens = { [middle]: await createPinnedToken(workspace, directory, middle) };
    systems.unshift(await serveDendro(workspace, directory, { tokens }));
    const compared = await compareSystems(listCases(), systems, sizes, report);
    return { perKind: largeDataset.perKind * SHARE, settings: SETTINGS, ...compared };
  } finally {
    await waitForAll(systems.map(system => system.stop()));
    for (const name of ['small', 'postgres'])
      rmSync(join(workspace.directory, name), { recursive: true, force: true });
  }
}

/** @param {SuiteResults['postgres']} result */
export function postgresTables(result) {
  const records = formatCount(2 * result.perKind);
  return [
    comparisonTable(
      `Uncached requests on the newest ${records} records, one client, median and p95 in milliseconds`,
      result,
    ),
    diskTable(`Disk usage of the same ${records} records`, result),
  ];
}
