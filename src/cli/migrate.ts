// dendro migrate: moves the records of an embedded store to a ClickHouse. Broken off, it goes on where it was.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Invocation, readStoreOptions, requireText } from '../config.ts';
import { OperatorError, UsageError } from '../errors.ts';
import { replaySpool } from '../intake/replay.ts';
import { LOG_KINDS } from '../log-record.ts';
import { compareDays, moveRecords } from '../store/migration.ts';
import { openClickHouseProgress, openStore } from '../store/open-store.ts';
import { type ClickHouseAddress, parseClickHouseAddress } from '../store-address.ts';
import { refusePositionals } from './positionals.ts';
import { makeProgressBar } from './progress-bar.ts';

const SHOWN = 20;
/** A checksum of all records takes its time. */
const QUERY_TIMEOUT_SECONDS = 3600;

export async function migrate(invocation: Invocation): Promise<void> {
  refusePositionals(invocation);
  const dataFolder = /^duckdb:(.+)$/s.exec(requireText(invocation, 'from'))?.[1];
  if (dataFolder === undefined) throw new UsageError('--from is written duckdb:DIR');
  if (!existsSync(join(dataFolder, 'dendro.duckdb')))
    throw new OperatorError(`there is no embedded store in ${dataFolder}`);
  const to = requireText(invocation, 'to');
  if (!/^clickhouses?:\/\//i.test(to)) throw new UsageError('--to is written clickhouse://…');
  const clickhouse = parseClickHouseAddress(to);
  const options = {
    ...readStoreOptions(invocation),
    dataFolder,
    clickhouse: undefined,
    queryTimeoutSeconds: QUERY_TIMEOUT_SECONDS,
  };
  const source = await openStore(options);
  const state = stateFolder(dataFolder, clickhouse);
  const target = await openStore({ ...options, dataFolder: state, clickhouse });
  try {
    const missing = await target.findMissing?.();
    if (missing !== undefined) throw new OperatorError(missing);
    const progress = await openClickHouseProgress(dataFolder);
    if (LOG_KINDS.some(kind => progress.reached(kind) > source.settled(kind)))
      throw new OperatorError(
        `nothing was moved: a server with a ClickHouse store took records in with ${dataFolder}, which would be there twice`,
      );
    await replaySpool(dataFolder, source);
    await source.settle(LOG_KINDS);
    const bar = makeProgressBar('migrate', process.stderr);
    const count = await moveRecords(source, target, (moved, all) =>
      bar.update(all === 0 ? 1 : moved / all, `${moved} of ${all} records`),
    ).finally(() => bar.clear());
    const differences = await compareDays(source, target);
    for (const { kind, day, here, there } of differences.slice(0, SHOWN))
      process.stdout.write(`${kind} ${day}: ${here} here; ${there} there\n`);
    if (differences.length > 0)
      throw new OperatorError(
        `days of a kind that differ: ${differences.length}; records came in or expired meanwhile, or something else writes ` +
          `there. To move all of them again, empty the tables there and delete ${state}`,
      );
    await progress.passOver(kind => source.settled(kind)); // the spool may still hold what was moved
    process.stdout.write(`${count} records: the counts and checksums of every kind and day are the same\n`);
  } finally {
    await target.close();
    await source.close();
  }
}

/**
 * How far it has come lies beside the records that are moved. By the database alone: another host may be one of the same
 * ClickHouse, and to begin anew there would store everything twice.
 */
function stateFolder(dataFolder: string, { database }: ClickHouseAddress): string {
  return join(dataFolder, `migration-${database}`);
}
