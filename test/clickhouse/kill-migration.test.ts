import { afterAll, beforeAll, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { openStore } from '../../src/store/open-store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { createDatabase } from '../support/clickhouse.ts';
import { reportFault, sized } from '../support/fault-report.ts';
import { spawnDendro } from '../support/process.ts';
import { record } from '../support/record.ts';
import { SEED } from '../support/seed.ts';
import { batches, createDataDirectory, removeDataDirectory } from '../support/store.ts';
import { runSql } from './run-sql.ts';

const KILLS = sized(3, 50);
/** To kill each migration before it may finish. */
const ATTEMPTS = 3;
const RECORDS = 60_000;
const START = micros('2026-11-10T00:00:00Z');
/** About the time of the first part of a migration, so that several kills interrupt one. */
const [MIN_DELAY_MS, DELAY_RANGE_MS] = [300, 1_500];

const dataDirectory = createDataDirectory();
beforeAll(async () => {
  const store = await openStore(testStoreOptions(dataDirectory));
  const records = Array.from({ length: RECORDS }, (_, i) =>
    record({ id: `s${i}`, at: START + BigInt(i) * 2_000_000n, project: `p${i % 5}` }),
  );
  await store.append(batches('auth', records));
  await store.close();
});
afterAll(() => removeDataDirectory(dataDirectory));

test('a dendro migrate that is killed resumes, and every record is stored once', {
  timeout: 1_800_000,
}, async () => {
  const random = new Random(SEED);
  let kills = 0;
  for (let migration = 0; migration < KILLS && kills < KILLS; migration++) {
    const clickhouse = await createDatabase();
    const [host] = clickhouse.urls.map(url => new URL(url).host);
    const { user, password } = clickhouse.writer;
    const env = { DENDRO_TO: `clickhouse://${user}:${password}@${host}/${clickhouse.database}` };
    const args = ['migrate', '--from', `duckdb:${dataDirectory}`];
    let killed = 0;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const killAfterMs = MIN_DELAY_MS + random.next() * DELAY_RANGE_MS;
      if ((await spawnDendro(args, { env, killAfterMs })).code === null) killed++;
    }
    kills += killed;
    const last = await spawnDendro(args, { env });
    expect(last).toMatchObject({ code: 0, stderr: '' });
    const [count = 0, distinct = 0] = await countRows(clickhouse);
    reportFault({
      fault: 'kill -9 during `dendro migrate`',
      runs: killed,
      outcome: 'the same command resumes; counts and checksums match',
      lost: RECORDS - distinct,
      duplicated: count - distinct,
    });
    await runSql(clickhouse, `drop database ${clickhouse.database}`);
  }
  expect(kills).toBeGreaterThanOrEqual(KILLS);
});

async function countRows(clickhouse: ClickHouseUrl): Promise<number[]> {
  const [row] = await runSql(clickhouse, 'select count(), uniqExact(id) from auth_logs');
  return (row as unknown[]).map(Number);
}
