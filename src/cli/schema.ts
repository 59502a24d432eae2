// dendro schema clickhouse: prints the statements that create the tables of a ClickHouse store, or runs them (--apply).
import { type Invocation, nameOf, readRetentionDays, readStoreOptions } from '../config.ts';
import { UsageError } from '../domain/errors.ts';
import { applyClickHouseSchema, renderClickHouseSchema } from '../store/open-store.ts';
import type { Io } from './io.ts';

export async function schema(invocation: Invocation, { stdout }: Io): Promise<void> {
  const [store, ...others] = invocation.positionals;
  if (store !== 'clickhouse' || others.length > 0)
    throw new UsageError(
      'expected: dendro schema clickhouse; only ClickHouse has a schema to apply, DuckDB creates its own tables',
    );
  const { clickhouse } = readStoreOptions(invocation);
  const retentionDays = readRetentionDays(invocation);
  const cluster = readCluster(invocation) ?? clickhouse?.cluster;
  if (!invocation.isOn('apply')) {
    const database = clickhouse?.database ?? 'default';
    stdout.write(await renderClickHouseSchema({ database, cluster, retentionDays }));
    return;
  }
  if (clickhouse === undefined)
    throw new UsageError(`${nameOf(invocation, 'apply')} needs --store clickhouse://…`);
  const applied = await applyClickHouseSchema({ ...clickhouse, cluster }, retentionDays);
  const outcome =
    applied.length === 0 ? 'tables and retention are up to date' : `applied version ${applied.join(', ')}`;
  stdout.write(`schema of ${clickhouse.database}: ${outcome}\n`);
}

function readCluster(invocation: Invocation): string | undefined {
  const cluster = invocation.text('cluster');
  if (cluster !== undefined && !/^[\w.-]+$/.test(cluster))
    throw new UsageError(
      `${nameOf(invocation, 'cluster')} ${cluster} is not a valid cluster name; allowed: letters, digits, _, - and .`,
    );
  return cluster;
}
