// Suite `peers`: Dendro over HTTP, ClickHouse over HTTP, and DuckDB alone, on the large data set.
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pickProjects } from '../records/dataset.mjs';
import { comparisonTable, diskTable, formatCount } from '../report/tables.mjs';
import { startClickHouse } from '../systems/clickhouse.mjs';
import { createPinnedToken, MEMORY_LIMIT, serveDendro } from '../systems/dendro.mjs';
import { startDuckDb } from '../systems/duckdb.mjs';
import { waitForAll } from '../tools/workspace.mjs';
import { listCases } from './cases.mjs';
import { compareSystems, messageOf } from './compare-systems.mjs';

/** @import { Context, Fault, Report, Rounds, SuiteResults, System } from '../types.ts' */

/** @param {Context} context @param {Rounds} rounds @param {Report} report */
export async function measurePeers(context, rounds, report) {
  const { workspace, largeDataset, isMissing } = context;
  /** @type {Fault[]} */
  const faults = [];
  /** @type {System[]} */
  const systems = [];
  const copy = join(workspace.directory, 'copy');
  const { middle } = pickProjects();
  try {
    const loading = context.loadLargeDataset(report);
    await waitForAll([
      loading,
      isMissing.clickhouse ? undefined : addClickHouse(context, systems, faults, report),
    ]);
    const directory = await loading;
    const tokens = { [middle]: await createPinnedToken(workspace, directory, middle) };
    cpSync(directory, copy, { recursive: true });
    systems.unshift(await startDuckDb(workspace, copy, MEMORY_LIMIT));
    systems.unshift(await serveDendro(workspace, directory, { tokens })); // the first system is the reference
    const compared = await compareSystems(listCases(), systems, rounds, report);
    return { perKind: largeDataset.perKind, ...compared, faults: [...faults, ...compared.faults] };
  } finally {
    await waitForAll(systems.map(system => system.stop()));
    for (const name of ['copy', 'clickhouse'])
      rmSync(join(workspace.directory, name), { recursive: true, force: true });
  }
}

/**
 * If ClickHouse fails, only its columns are missing.
 * @param {Context} context @param {System[]} systems @param {Fault[]} faults @param {Report} report
 */
async function addClickHouse({ workspace, largeDataset }, systems, faults, report) {
  /** @type {Awaited<ReturnType<typeof startClickHouse>> | undefined} */
  let server;
  try {
    server = await startClickHouse(workspace);
    await server.load(largeDataset, report);
    systems.push(server);
  } catch (error) {
    await server?.stop();
    faults.push({ system: 'clickhouse', reason: messageOf(error) });
  }
}

/** @param {SuiteResults['peers']} result */
export function peersTables(result) {
  const records = formatCount(2 * result.perKind);
  return [
    comparisonTable(
      `Uncached requests on ${records} records, one client, median and p95 in milliseconds`,
      result,
    ),
    diskTable(`Disk usage of the same ${records} records`, result),
  ];
}
