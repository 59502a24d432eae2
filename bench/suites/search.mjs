// Suite `search`: logs.search over HTTP beside the same searches in SQL. ClickHouse is compared on the large data set, PostgreSQL
// on the newest records of it (`postgresShare`): with ILIKE alone, and with trigram indexes (pg_trgm), which take long to build.
// What the other systems have no query for is measured alone: all log kinds at once, and the endpoints that count and compare.
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

const FLAGS = ['--cache-bytes', '0'];

/** @param {Context} context @param {Rounds & { quietSeconds: number, postgresShare: number }} sizes @param {Report} report */
export async function measureSearch(context, sizes, report) {
  const { largeDataset, isMissing } = context;
  const large = isMissing.clickhouse ? undefined : await compareClickHouse(context, sizes, report);
  const small = isMissing.postgres ? undefined : await comparePostgres(context, sizes, report);
  const faults = [large?.compared, large?.alone, small].flatMap(each => each?.faults ?? []);
  const { perKind } = largeDataset;
  return {
    perKind,
    postgresShare: sizes.postgresShare,
    large: large?.compared,
    alone: large?.alone,
    small,
    faults,
  };
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
    const dendro = await serveDendro(workspace, await loading, { flags: FLAGS });
    systems.unshift(dendro);
    const requestId = await findRequestId(dendro);
    const compared = await compareSystems(listSearches(requestId), systems, rounds, report);
    return { compared, alone: await compareSystems(listOthers(requestId), [dendro], rounds, report) };
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
    const dendro = await serveDendro(workspace, directory, { flags: FLAGS });
    systems.unshift(dendro);
    return await compareSystems(listSearches(await findRequestId(dendro)), systems, rounds, report);
  } finally {
    await waitForAll(systems.map(system => system.stop()));
    for (const name of ['searched', 'postgres'])
      rmSync(join(workspace.directory, name), { recursive: true, force: true });
  }
}

/**
 * The request id of a record that is ten days old, so that PostgreSQL has it too.
 * @param {System} dendro
 */
async function findRequestId(dendro) {
  const { largest } = pickProjects();
  const iso_timestamp_end = new Date(Date.now() - 10 * 86_400_000).toISOString();
  const parameters = { project: largest, project_tier: 'PAYG', iso_timestamp_end };
  const { rows } = await dendro.query({ label: 'request id', endpoint: 'logs.search', parameters }, true);
  const metadata = /** @type {any} */ (rows[0][3]);
  return metadata.response.headers.x_request_id;
}

/**
 * Words that occur in many records, in a few, in one and in none, over 90 days and over a day. The two words never occur in the same
 * record, but often in neighbouring ones, so no text filter helps: all records are read.
 * @param {string} requestId
 * @returns {BenchRequest[]}
 */
function listSearches(requestId) {
  const { largest, middle } = pickProjects();
  const searches = { common: 'firefox', rare: '203.0.113.7', none: 'zebra-crossing' };
  return [
    ...Object.entries(searches).map(([label, word]) =>
      search(`${label} word, largest, 90 days`, largest, word),
    ),
    search('request id, largest, 90 days', largest, requestId),
    search('two words, largest, 90 days', largest, 'berlin paris'),
    search('rare word, middle, 90 days', middle, '203.0.113.7'),
    search('rare word, largest, 1 day', largest, '203.0.113.7', { project_tier: 'FREE' }),
  ];
}

/** @param {string} requestId @returns {BenchRequest[]} */
function listOthers(requestId) {
  const { largest } = pickProjects();
  const errors = { project: largest, query: 'status:>=500', project_tier: 'PAYG' };
  return [
    ...['edge', 'function_edge', 'all'].flatMap(kind => [
      search(`request id, kind ${kind}, 90 days`, largest, requestId, { kind }),
      search(`rare word, kind ${kind}, 7 days`, largest, '203.0.113.7', { kind, project_tier: 'PRO' }),
    ]),
    // The text index knows only letters and digits, so this is a word that occurs nowhere without the index.
    search('none word without the index, 90 days', largest, '§§§'),
    { label: 'histogram of errors, 90 days', endpoint: 'logs.histogram', parameters: errors },
    { label: 'top paths of errors, 90 days', endpoint: 'logs.top', parameters: { ...errors, field: 'path' } },
    {
      label: 'patterns of errors, 7 days',
      endpoint: 'logs.patterns',
      parameters: { ...errors, project_tier: 'PRO' },
    },
    { label: 'compare errors with the rest, 90 days', endpoint: 'logs.compare', parameters: errors },
  ];
}

/** @param {string} label @param {string} project @param {string} query @param {Record<string, string>} others */
function search(label, project, query, others = {}) {
  const parameters = { project, query, project_tier: 'PAYG', ...others };
  return { label: `search, ${label}`, endpoint: 'logs.search', parameters };
}

/** @param {SuiteResults['search']} result */
export function searchTables({ perKind, postgresShare, large, alone, small }) {
  const title = (/** @type {number} */ records) =>
    `Searches of ${formatCount(records)} records, first page, one client, median and p95 in milliseconds`;
  const count = 2 * perKind;
  return [
    ...(large === undefined ? [] : [comparisonTable(title(count), large)]),
    ...(alone === undefined
      ? []
      : [
          comparisonTable(
            `Other requests to ${formatCount(count)} records, the largest project, in milliseconds`,
            alone,
          ),
        ]),
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
