// Dendro over HTTP beside PostgreSQL in Logflare's layout, on the last fifth of the large platform's records: with all of
// them PostgreSQL would take minutes for a round.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { loadDendro, makePinnedToken, serveDendro } from '../peers/dendro.mjs';
import { SETTINGS, startPostgres } from '../peers/postgres.mjs';
import { pickProjects } from '../records/projects.mjs';
import { comparedTable, diskTable } from '../report/compared-table.mjs';
import { count } from '../report/format.mjs';
import { allDone } from '../tools/all-done.mjs';
import { listCases } from './cases.mjs';
import { compareSystems } from './compare-systems.mjs';

const SHARE = 0.2;

export async function measurePostgres({ workplace, platform, missing }, sizes, report) {
  if (missing.postgres) return { leftOut: 'postgresql is missing' };
  const folder = join(workplace.folder, 'small');
  const { middle } = pickProjects();
  const systems = [];
  try {
    await allDone([
      loadDendro(workplace, folder, platform, { share: SHARE, quietSeconds: sizes.quietSeconds }, report),
      startPostgres(workplace).then(postgres => {
        systems.push(postgres);
        return postgres.load(platform, SHARE, report);
      }),
    ]);
    const tokens = { [middle]: await makePinnedToken(workplace, folder, middle) };
    systems.unshift(await serveDendro(workplace, folder, { tokens }));
    const compared = await compareSystems(listCases(), systems, sizes, report);
    return { perKind: platform.perKind * SHARE, settings: SETTINGS, ...compared };
  } finally {
    await allDone(systems.map(system => system.stop()));
    for (const name of ['small', 'postgres'])
      rmSync(join(workplace.folder, name), { recursive: true, force: true });
  }
}

export function postgresTables(result) {
  const records = count(2 * result.perKind);
  return [
    comparedTable(
      `Uncached answers on the last ${records} records, one caller, medians of interleaved rounds`,
      result,
    ),
    diskTable(`Disk for the same ${records} records`, result),
  ];
}
