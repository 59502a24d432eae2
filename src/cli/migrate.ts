// dendro migrate: copies the records of an embedded store to ClickHouse and verifies the copy. Resumes if interrupted.
import { join } from 'node:path';
import { type Invocation, nameOf, readStoreOptions, requireText } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { replaySpool } from '../intake/applier.ts';
import { createStoreCallbacks, Quarantine } from '../intake/quarantine.ts';
import { logTo } from '../observe/log.ts';
import { type ClickHouseUrl, isClickHouseUrl, parseClickHouseUrl } from '../store/clickhouse-url.ts';
import { compareDays, copyRecords } from '../store/migration.ts';
import { openClickHouseOutbox, openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { requireEmbeddedStore } from './check.ts';
import type { Io } from './io.ts';
import { createProgressBar, showConversion } from './terminal.ts';

const MAX_DIFFERENCES_SHOWN = 20;
/** A checksum over all records takes minutes. */
const QUERY_TIMEOUT_SECONDS = 3600;

export async function migrate(invocation: Invocation, io: Io): Promise<void> {
  const dataDirectory = readSource(invocation);
  const clickhouse = readTarget(invocation);
  const options = {
    ...readStoreOptions(invocation),
    dataDirectory,
    clickhouse: undefined,
    queryTimeoutSeconds: QUERY_TIMEOUT_SECONDS,
  };
  const stateDirectory = stateDirectoryOf(dataDirectory, clickhouse);
  const log = showConversion(io, logTo(io.stdout, io.stderr));
  const quarantine = new Quarantine(dataDirectory, log);
  const callbacks = createStoreCallbacks(quarantine, systemClock, log);
  const source = await openStore(options, callbacks);
  try {
    const target = await openStore({ ...options, dataDirectory: stateDirectory, clickhouse }, callbacks);
    await copyAndVerify(source, target, dataDirectory, stateDirectory, io).finally(() => target.close());
  } finally {
    await quarantine.idle();
    await source.close();
  }
}

async function copyAndVerify(
  source: Store,
  target: Store,
  dataDirectory: string,
  stateDirectory: string,
  io: Io,
): Promise<void> {
  const problem = await target.preflight();
  if (problem !== undefined) throw new OperatorError(problem);
  const outbox = await openClickHouseOutbox(dataDirectory);
  // The outbox of `target` is in `stateDirectory`; this one is in the data directory. If this one is ahead of the DuckDB file, a
  // server has used the data directory with the ClickHouse store.
  if (LOG_KINDS.some(kind => outbox.durableUpTo(kind) > source.flushedUpTo(kind)))
    throw new OperatorError(
      `nothing was migrated: a server has already sent records from ${dataDirectory} to ClickHouse; migrating them would store them twice`,
    );
  await replaySpool(dataDirectory, source, logTo(io.stdout, io.stderr));
  await source.flush(LOG_KINDS);
  const count = await copyWithProgressBar(source, target, io);
  await verify(source, target, stateDirectory, io);
  // The spool can still contain records that were copied. This makes a server with the ClickHouse store skip them.
  await outbox.skipTo(kind => source.flushedUpTo(kind));
  io.stdout.write(`${count} records migrated: counts and checksums match for every kind and day\n`);
}

function readSource(invocation: Invocation): string {
  const dataDirectory = /^duckdb:(.+)$/s.exec(requireText(invocation, 'from'))?.[1];
  if (dataDirectory === undefined)
    throw new UsageError(`${nameOf(invocation, 'from')} must be duckdb:DIR, such as duckdb:./data`);
  requireEmbeddedStore(dataDirectory);
  return dataDirectory;
}

function readTarget(invocation: Invocation): ClickHouseUrl {
  const url = requireText(invocation, 'to');
  if (!isClickHouseUrl(url))
    throw new UsageError(`${nameOf(invocation, 'to')} must be a ClickHouse URL: clickhouse://…`);
  return parseClickHouseUrl(url, nameOf(invocation, 'to'));
}

/**
 * Returns the directory for the progress of the migration. Its name omits the host: a rerun through another host of the same
 * cluster must find this progress, or it would copy every record a second time.
 */
function stateDirectoryOf(dataDirectory: string, { database }: ClickHouseUrl): string {
  return join(dataDirectory, `migration-${database}`);
}

async function copyWithProgressBar(source: Store, target: Store, { stderr }: Io): Promise<number> {
  const bar = createProgressBar('migrate', stderr);
  const onProgress = (copied: number, total: number) =>
    bar.update(total === 0 ? 1 : copied / total, `${copied} of ${total} records`);
  return copyRecords(source, target, onProgress).finally(() => bar.clear());
}

async function verify(source: Store, target: Store, stateDirectory: string, io: Io): Promise<void> {
  const differences = await compareDays(source, target);
  if (differences.length === 0) return;
  for (const day of differences.slice(0, MAX_DIFFERENCES_SHOWN))
    io.stdout.write(`${day.kind} ${day.day}: source ${day.source}; target ${day.target}\n`);
  throw new OperatorError(
    `source and target differ for ${differences.length} combinations of kind and day: records arrived or expired since the ` +
      'migration began, or another process writes to the target. To migrate everything again, truncate the tables of ' +
      `the target and delete ${stateDirectory}`,
  );
}
