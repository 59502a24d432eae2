// Dendro over HTTP beside ClickHouse over HTTP and DuckDB by itself, on all records of the large platform.
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { startClickHouse } from '../peers/clickhouse.mjs';
import { MEMORY_LIMIT, makePinnedToken, serveDendro } from '../peers/dendro.mjs';
import { startDuckDb } from '../peers/duckdb.mjs';
import { pickProjects } from '../records/projects.mjs';
import { comparedTable, diskTable } from '../report/compared-table.mjs';
import { count } from '../report/format.mjs';
import { allDone } from '../tools/all-done.mjs';
import { listCases } from './cases.mjs';
import { compareSystems } from './compare-systems.mjs';

export async function measurePeers(stage, sizes, report) {
  const { workplace, platform, missing } = stage;
  const faults = [];
  const systems = [];
  const copy = join(workplace.folder, 'copy');
  const { middle } = pickProjects();
  try {
    const [folder] = await allDone([
      stage.largeFolder(report),
      missing.clickhouse ? undefined : startLoaded(workplace, platform, systems, faults, report),
    ]);
    const tokens = { [middle]: await makePinnedToken(workplace, folder, middle) };
    cpSync(folder, copy, { recursive: true });
    systems.unshift(await startDuckDb(workplace, copy, MEMORY_LIMIT));
    systems.unshift(await serveDendro(workplace, folder, { tokens })); // the first is whom the others have to agree with
    const compared = await compareSystems(listCases(), systems, sizes, report);
    return { perKind: platform.perKind, ...compared, faults: [...faults, ...compared.faults] };
  } finally {
    await allDone(systems.map(system => system.stop()));
    for (const name of ['copy', 'clickhouse'])
      rmSync(join(workplace.folder, name), { recursive: true, force: true });
  }
}

/** A peer that fails costs its own column. */
async function startLoaded(workplace, platform, systems, faults, report) {
  let server;
  try {
    server = await startClickHouse(workplace);
    await server.load(platform, report);
    systems.push(server);
  } catch (error) {
    await server?.stop();
    faults.push({ system: 'clickhouse', reason: error.message });
  }
}

export function peersTables(result) {
  const records = count(2 * result.perKind);
  return [
    comparedTable(
      `Uncached answers on ${records} records, one caller, medians of interleaved rounds`,
      result,
    ),
    diskTable(`Disk for the same ${records} records`, result),
  ];
}
