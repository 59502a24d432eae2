// Databases for tests on the ClickHouse server of this run. Without one, the tests run on the embedded store.
import { inject } from 'vitest';
import { type ClickHouseUrl, parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { applyClickHouseSchema } from '../../src/store/open-store.ts';

/** No TTL: tests set their own clock but ClickHouse uses the real one, and must not expire their records. */
const RETENTION_DAYS = 36_500;
let databases = 0;

export function isOnClickHouse(): boolean {
  return inject('clickhouse') !== undefined;
}

/**
 * Creates a database with all tables. Retries after a ping timed out, and after no other failure: two test processes share one
 * engine, and one of them can keep it busy.
 */
export async function createDatabase(): Promise<ClickHouseUrl> {
  const url = newDatabaseUrl();
  const apply = () => applyClickHouseSchema(url, RETENTION_DAYS);
  await apply().catch((error: Error) => {
    if (!error.message.includes('the host does not respond')) throw error;
    return apply();
  });
  return url;
}

/** The URL of a database that does not exist yet. */
export function newDatabaseUrl(): ClickHouseUrl {
  const url = parseClickHouseUrl(inject('clickhouse'));
  return { ...url, database: `test_${process.pid}_${Math.trunc(performance.timeOrigin)}_${databases++}` };
}

/** Store options that select a new database if this run is on ClickHouse. */
export async function storeOverrides(): Promise<{ clickhouse?: ClickHouseUrl }> {
  return isOnClickHouse() ? { clickhouse: await createDatabase() } : {};
}
