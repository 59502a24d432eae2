// dendro migrate: moves the records of an embedded store to a ClickHouse. Broken off, it goes on where it was.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Invocation, readStoreOptions, requireText } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { replaySpool } from '../intake/applier.ts';
import { type ClickHouseUrl, parseClickHouseUrl } from '../store/clickhouse-url.ts';
import { compareDays, moveRecords } from '../store/migration.ts';
import { openClickHouseProgress, openStore } from '../store/open-store.ts';
import { createProgressBar } from './progress-bar.ts';

const SHOWN = 20;
/** A checksum of all records takes its time. */
const QUERY_TIMEOUT_SECONDS = 3600;

export async function migrate(invocation: Invocation): Promise<void> {
  const dataDirectory = /^duckdb:(.+)$/s.exec(requireText(invocation, 'from'))?.[1];
  if (dataDirectory === undefined) throw new UsageError('--from is written duckdb:DIR');
  if (!existsSync(join(dataDirectory, 'dendro.duckdb')))
    throw new OperatorError(`there is no embedded store in ${dataDirectory}`);
  const to = requireText(invocation, 'to');
  if (!/^clickhouses?:\/\//i.test(to)) throw new UsageError('--to is written clickhouse://…');
  const clickhouse = parseClickHouseUrl(to);
  const options = {
    ...readStoreOptions(invocation),
    dataDirectory,
    clickhouse: undefined,
    queryTimeoutSeconds: QUERY_TIMEOUT_SECONDS,
  };
  const source = await openStore(options);
  const state = stateFolder(dataDirectory, clickhouse);
  const target = await openStore({ ...options, dataDirectory: state, clickhouse });
  try {
    const missing = await target.preflight?.();
    if (missing !== undefined) throw new OperatorError(missing);
    const progress = await openClickHouseProgress(dataDirectory);
    if (LOG_KINDS.some(kind => progress.queuedUpTo(kind) > source.flushedUpTo(kind)))
      throw new OperatorError(
        `nothing was moved: a server with a ClickHouse store took records in with ${dataDirectory}, which would be there twice`,
      );
    await replaySpool(dataDirectory, source);
    await source.flush(LOG_KINDS);
    const bar = createProgressBar('migrate', process.stderr);
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
    await progress.skipTo(kind => source.flushedUpTo(kind)); // the spool may still hold what was moved
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
function stateFolder(dataDirectory: string, { database }: ClickHouseUrl): string {
  return join(dataDirectory, `migration-${database}`);
}
