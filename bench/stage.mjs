// What the parts of one run share: the workplace, which programs there are, and the large platform, which is loaded when
// the first part asks for it.
import { join } from 'node:path';
import { ensurePrograms } from '../scripts/debian.mjs';
import { loadDendro } from './peers/dendro.mjs';
import { findPostgres } from './peers/postgres.mjs';
import { makePlatforms } from './records/platform.mjs';

export function openStage(workplace, sizes) {
  const makePlatform = makePlatforms(sizes.growth.perKind[0]);
  const platform = makePlatform(sizes.platform.perKind);
  let loading;
  return {
    workplace,
    makePlatform,
    platform,
    missing: findMissing(),
    /** Answers the data directory that holds the large platform. One server at a time may have it. */
    largeFolder(report) {
      const folder = join(workplace.folder, 'large');
      loading ??= loadDendro(workplace, folder, platform, sizes.platform, report).then(() => folder);
      return loading;
    },
  };
}

/** Programs that could not be had, by the name of the system that needs them. */
function findMissing() {
  const missing = new Set(
    ensurePrograms({ wrk: ['wrk'], 'clickhouse-server': ['clickhouse-server'], psql: ['postgresql'] }),
  );
  if (findPostgres() === undefined) missing.add('psql');
  return {
    wrk: missing.has('wrk'),
    clickhouse: missing.has('clickhouse-server'),
    postgres: missing.has('psql'),
  };
}
