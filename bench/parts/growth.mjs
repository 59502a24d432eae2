// What a project's questions cost as the platform around it grows: three projects whose records stay the same, among one
// million records and among many.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { letRest, serveDendro } from '../peers/dendro.mjs';
import { count, ms, times } from '../report/format.mjs';
import { allDone } from '../tools/all-done.mjs';
import { median, percentile } from '../tools/statistics.mjs';
import { listSteadyCases } from './cases.mjs';
import { compareSystems } from './compare-systems.mjs';

const layRecords = join(import.meta.dirname, '..', 'records', 'lay-records.mjs');

export async function measureGrowth(stage, { perKind, quietSeconds = 0, ...sizes }, report) {
  const { workplace, platform } = stage;
  const systems = [];
  try {
    for (const records of perKind) {
      const folder =
        records === platform.perKind
          ? await stage.largeFolder(report)
          : await makeFolder(stage, records, quietSeconds, report);
      systems.push({ ...(await serveDendro(workplace, folder)), name: String(2 * records) });
    }
    return await compareSystems(listSteadyCases(platform.steady), systems, sizes, report);
  } finally {
    await allDone(systems.map(system => system.stop()));
    for (const records of perKind) rmSync(folderOf(workplace, records), { recursive: true, force: true });
  }
}

const folderOf = (workplace, records) => join(workplace.folder, `growth-${records}`);

async function makeFolder({ workplace, makePlatform }, records, quietSeconds, report) {
  const folder = folderOf(workplace, records);
  report(`writing ${count(2 * records)} records`);
  await workplace.read([process.execPath, layRecords, folder, JSON.stringify(makePlatform(records))]);
  await letRest(workplace, folder, quietSeconds, report);
  return folder;
}

export function growthTables({ cases }) {
  const sizes = Object.keys(cases[0].ms).sort((a, b) => a - b);
  return [
    {
      title: 'The same project in platforms of different size: median and p95 in milliseconds',
      header: [
        'call',
        'rows',
        ...sizes.flatMap(size => [`${count(size)} records`, 'p95']),
        'largest / smallest',
      ],
      rows: cases.map(({ label, rowCount, ms: samples }) => [
        label,
        rowCount,
        ...sizes.flatMap(size => [ms(median(samples[size])), ms(percentile(samples[size], 0.95))]),
        times(growthOf(samples)),
      ]),
    },
  ];
}

/** What the largest platform costs against the smallest. */
export function growthOf(samples) {
  const sizes = Object.keys(samples).sort((a, b) => a - b);
  return median(samples[sizes.at(-1)]) / median(samples[sizes[0]]);
}
