// A database of a test's own on the ClickHouse that the run was given, if it was.
import { inject } from 'vitest';
import { type ClickHouseUrl, parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { applyClickHouseSchema } from '../../src/store/open-store.ts';

/** Tests set their clock, ClickHouse has its own: no record may be too old for it. */
const RETENTION_DAYS = 36_500;
let made = 0;

export function isOnClickHouse(): boolean {
  return inject('clickhouse') !== undefined;
}

export async function makeDatabase(): Promise<ClickHouseUrl> {
  const address = newDatabase();
  await applyClickHouseSchema(address, RETENTION_DAYS);
  return address;
}

/** The address of a database that is not there yet. */
export function newDatabase(): ClickHouseUrl {
  const address = parseClickHouseUrl(inject('clickhouse'));
  return { ...address, database: `test_${process.pid}_${Math.trunc(performance.timeOrigin)}_${made++}` };
}

/** What a store's options are, besides the rest, where the run is on ClickHouse. */
export async function storeOverrides(): Promise<{ clickhouse?: ClickHouseUrl }> {
  return isOnClickHouse() ? { clickhouse: await makeDatabase() } : {};
}
