// Suite `search`: logs.search over HTTP beside the same searches in SQL. ClickHouse is compared on the large data set, PostgreSQL
// on the newest records of it (`postgresShare`): with ILIKE alone, and with trigram indexes (pg_trgm), which take long to build.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pickProjects } from '../records/dataset.mjs';
import { comparisonTable, diskTable, formatCount } from '../report/tables.mjs';
import { startClickHouse } from '../systems/clickhouse.mjs';
import { loadDendro, serveDendro } from '../systems/dendro.mjs';
import { startPostgres } from '../systems/postgres.mjs';
import { waitForAll } from '../tools/workspace.mjs';
import { compareSystems } from './compare-systems.mjs';

/** @import { BenchRequest, Context, Report, Rounds, SuiteResults, System } from '../types.ts' */

const FLAGS = ['--cache-bytes', '0', '--packs', 'explore'];

/** @param {Context} context @param {Rounds & { quietSeconds: number, postgresShare: number }} sizes @param {Report} report */
export async function measureSearch(context, sizes, report) {
  const { largeDataset, isMissing } = context;
  const large = isMissing.clickhouse ? undefined : await compareClickHouse(context, sizes, report);
  const small = isMissing.postgres ? undefined : await comparePostgres(context, sizes, report);
  const faults = [...(large?.faults ?? []), ...(small?.faults ?? [])];
  return { perKind: largeDataset.perKind, postgresShare: sizes.postgresShare, large, small, faults };
}

/** @param {Context} context @param {Rounds} rounds @param {Report} report */
async function compareClickHouse(context, rounds, report) {
  const { workspace, largeDataset } = context;
  /** @type {System[]} */
  const systems = [];
  try {
    const loading = context.loadLargeDataset(report);
    await waitForAll([
      loading,
      startClickHouse(workspace).then(clickhouse => {
        systems.push(clickhouse);
        return clickhouse.load(largeDataset, report);
      }),
    ]);
    systems.unshift(await serveDendro(workspace, await loading, { flags: FLAGS }));
    return await compareSystems(listSearches(), systems, rounds, report);
  } finally {
    await waitForAll(systems.map(system => system.stop()));
    rmSync(join(workspace.directory, 'clickhouse'), { recursive: true, force: true });
  }
}

/** @param {Context} context @param {Rounds & { quietSeconds: number, postgresShare: number }} sizes @param {Report} report */
async function comparePostgres(
  { workspace, largeDataset },
  { quietSeconds, postgresShare, ...rounds },
  report,
) {
  const directory = join(workspace.directory, 'searched');
  /** @type {System[]} */
  const systems = [];
  try {
    await waitForAll([
      loadDendro(workspace, directory, largeDataset, { share: postgresShare, quietSeconds }, report),
      startPostgres(workspace).then(async postgres => {
        systems.push(postgres);
        await postgres.load(largeDataset, postgresShare, report);
        report('PostgreSQL, trigram indexes');
        await postgres.createTrigramIndexes();
        systems.push(postgres.withTrigrams());
      }),
    ]);
    systems.unshift(await serveDendro(workspace, directory, { flags: FLAGS }));
    return await compareSystems(listSearches(), systems, rounds, report);
  } finally {
    await waitForAll(systems.map(system => system.stop()));
    for (const name of ['searched', 'postgres'])
      rmSync(join(workspace.directory, name), { recursive: true, force: true });
  }
}

/**
 * Words that occur in many records, in a few and in none, over 90 days and over a day.
 * @returns {BenchRequest[]}
 */
function listSearches() {
  const { largest, middle } = pickProjects();
  const searches = { common: 'firefox', rare: '203.0.113.7', none: 'zebra-crossing' };
  return [
    ...Object.entries(searches).map(([label, word]) =>
      search(`${label} word, largest, 90 days`, largest, word),
    ),
    search('two words, largest, 90 days', largest, 'berlin okhttp'),
    search('rare word, middle, 90 days', middle, '203.0.113.7'),
    search('rare word, largest, 1 day', largest, '203.0.113.7', 'FREE'),
  ];
}

/** @param {string} label @param {string} project @param {string} query */
function search(label, project, query, project_tier = 'PAYG') {
  return { label: `search, ${label}`, endpoint: 'logs.search', parameters: { project, query, project_tier } };
}

/** @param {SuiteResults['search']} result */
export function searchTables({ perKind, postgresShare, large, small }) {
  const title = (/** @type {number} */ records) =>
    `Searches of ${formatCount(records)} records, first page, one client, median and p95 in milliseconds`;
  const count = 2 * perKind;
  return [
    ...(large === undefined ? [] : [comparisonTable(title(count), large)]),
    ...(small === undefined
      ? []
      : [
          comparisonTable(title(count * postgresShare), small),
          diskTable(`Disk usage of the same ${formatCount(count * postgresShare)} records`, {
            ...small,
            perKind: perKind * postgresShare,
          }),
        ]),
  ];
}
