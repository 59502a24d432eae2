// Erases the records of a project from the tables, with a mutation per log kind: ClickHouse rewrites the parts that contain such
// records. A mutation affects only the parts that exist when it starts, so records that arrive later stay.
import type { ClickHouseSettings } from '@clickhouse/client';
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import type { EraseScope } from '../store.ts';
import { toOperatorError } from './errors.ts';
import type { Hosts } from './hosts.ts';
import { onCluster, storageTable } from './schema.ts';

/** The limit for each log kind. If a mutation takes longer, `eraseProject` fails, and ClickHouse continues the mutation. */
const TIMEOUT_MS = 3_600_000;

const SETTINGS: ClickHouseSettings = {
  mutations_sync: '2', // responds when all replicas have finished
  distributed_ddl_task_timeout: String(TIMEOUT_MS / 1000),
  log_comment: 'dendro erase',
};

/** Returns the number of erased records, counted before each mutation. Safe to repeat, also after it was interrupted. */
export async function eraseProject(
  hosts: Hosts,
  clickhouse: ClickHouseUrl,
  { project, beforeMicros }: EraseScope,
): Promise<number> {
  const { database, writer } = clickhouse;
  const condition = `project = {project:String}${beforeMicros === undefined ? '' : ' and timestamp < {before:Int64}'}`;
  const query_params = { project, ...(beforeMicros === undefined ? {} : { before: String(beforeMicros) }) };
  const auth = { username: writer.user, password: writer.password };
  let erased = 0;
  try {
    for (const kind of LOG_KINDS) {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      erased += await hosts.run(async ({ client, signal: abort_signal }) => {
        const query = `select count() from ${database}.${kind}_logs where ${condition}`;
        const result = await client.query({ query, query_params, format: 'JSONCompact', abort_signal });
        return Number((await result.json<[string | number]>()).data[0]?.[0]);
      }, signal);
      const table = `${database}.${storageTable(kind, clickhouse)}${onCluster(clickhouse)}`;
      await hosts.run(async ({ client, signal: abort_signal }) => {
        const query = `alter table ${table} delete where ${condition}`;
        await client.command({ query, query_params, auth, clickhouse_settings: SETTINGS, abort_signal });
      }, signal);
    }
    return erased;
  } catch (error) {
    throw toOperatorError('cannot erase the project in ClickHouse', error);
  }
}
