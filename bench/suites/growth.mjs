// Suite `growth`: the cost of a project's requests as the data set around it grows. Three projects have the same records in
// every data set.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { formatCount, formatMs, formatRatio } from '../report/tables.mjs';
import { compact, serveDendro } from '../systems/dendro.mjs';
import { median, percentile } from '../tools/statistics.mjs';
import { waitForAll } from '../tools/workspace.mjs';
import { listFixedCases } from './cases.mjs';
import { compareSystems } from './compare-systems.mjs';

/** @import { Context, MeasuredRequest, Report, Rounds, SuiteResults, System, Table, Workspace } from '../types.ts' */

const writePartsProcess = join(import.meta.dirname, '..', 'records', 'write-parts-process.mjs');

/**
 * @param {Context} context
 * @param {Rounds & { perKind: number[], quietSeconds: number }} sizes @param {Report} report
 */
export async function measureGrowth(context, { perKind, quietSeconds, ...rounds }, report) {
  const { workspace, largeDataset } = context;
  /** @type {System[]} */
  const systems = [];
  try {
    for (const records of perKind) {
      const directory =
        records === largeDataset.perKind
          ? await context.loadLargeDataset(report)
          : await writeDataset(context, records, quietSeconds, report);
      systems.push({ ...(await serveDendro(workspace, directory)), name: String(2 * records) });
    }
    return await compareSystems(listFixedCases(largeDataset.fixedProjects), systems, rounds, report);
  } finally {
    await waitForAll(systems.map(system => system.stop()));
    for (const records of perKind)
      rmSync(dataDirectoryOf(workspace, records), { recursive: true, force: true });
  }
}

/** @param {Workspace} workspace @param {number} records */
const dataDirectoryOf = (workspace, records) => join(workspace.directory, `growth-${records}`);

/** @param {Context} context @param {number} records @param {number} quietSeconds @param {Report} report */
async function writeDataset({ workspace, createDataset }, records, quietSeconds, report) {
  const directory = dataDirectoryOf(workspace, records);
  report(`writing ${formatCount(2 * records)} records`);
  const dataset = JSON.stringify(createDataset(records));
  await workspace.readOutput([process.execPath, writePartsProcess, directory, dataset]);
  await compact(workspace, directory, quietSeconds, report);
  return directory;
}

/**
 * @param {SuiteResults['growth']} result
 * @returns {Table[]}
 */
export function growthTables({ cases }) {
  const sizes = listSizes(cases[0].ms);
  return [
    {
      title: 'The same project in data sets of different size, median and p95 in milliseconds',
      header: [
        'request',
        'rows',
        ...sizes.flatMap(size => [`${formatCount(Number(size))} records`, 'p95']),
        'largest / smallest',
      ],
      rows: cases.map(({ label, rowCount, ms }) => [
        label,
        rowCount,
        ...sizes.flatMap(size => [formatMs(median(ms[size])), formatMs(percentile(ms[size], 0.95))]),
        formatRatio(growthRatio(ms)),
      ]),
    },
  ];
}

/**
 * The median in the largest data set divided by the median in the smallest.
 * @param {MeasuredRequest['ms']} ms
 */
export function growthRatio(ms) {
  const sizes = listSizes(ms);
  return median(ms[sizes[sizes.length - 1]]) / median(ms[sizes[0]]);
}

/** @param {MeasuredRequest['ms']} ms */
function listSizes(ms) {
  return Object.keys(ms).sort((a, b) => Number(a) - Number(b));
}
