import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { compareDays, copyRecords } from '../../src/store/migration.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { createDatabase } from '../support/clickhouse.ts';
import { PROCESS_API_KEY, runDendro, startServer } from '../support/process.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { batches, createDataDirectory, removeDataDirectory } from '../support/store.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { runSql } from './run-sql.ts';

const START = micros('2026-11-10T23:58:30Z');
const SECOND = 1_000_000n;
/** One record every 10 s: more than one slice, and several days. */
const SPREAD = 30_000;
/** All in one minute, so that the minute has more records than a slice. */
const CROWDED = 45_000;
/** Large records, some of them in one minute. */
const LARGE = 160;

describe('migrating an embedded store to ClickHouse', () => {
  const directories = [createDataDirectory(), createDataDirectory()];
  const [sourceDirectory = '', stateDirectory = ''] = directories;
  let clickhouse: ClickHouseUrl;
  let proxy: FaultyProxy;
  let source: Store;
  let target: Store;

  const openTarget = () =>
    openStore({ ...testStoreOptions(stateDirectory), clickhouse: { ...clickhouse, urls: [proxy.url] } });
  /** The number of rows, and of different ids. */
  const countRows = async () => (await runSql(clickhouse, 'select count(), uniqExact(id) from auth_logs'))[0];

  beforeAll(async () => {
    clickhouse = await createDatabase();
    proxy = await FaultyProxy.open(clickhouse);
    source = await openStore(testStoreOptions(sourceDirectory));
    const spread = Array.from({ length: SPREAD }, (_, i) =>
      record({ id: `s${i}`, at: START + BigInt(i) * 10n * SECOND, project: `p${i % 5}` }),
    );
    const crowded = Array.from({ length: CROWDED }, (_, i) =>
      record({ id: `c${i}`, at: START, project: 'p' }),
    );
    await source.append(batches('auth', spread, crowded));
    await source.append(
      batches('edge', [
        edgeRecord({ at: START, project: "\0'\\🦕", message: '"\u2028\x1f\n', metadata: { a: '\\N' } }),
      ]),
    );
    await source.append(
      batches('function_edge', [
        functionEdgeRecord({ at: START, ms: 1e-7, status: null }),
        functionEdgeRecord({ at: START, ms: null, status: 500 }),
        functionEdgeRecord({ at: START, ms: 1234.5678 }),
      ]),
    );
    target = await openTarget();
  });
  afterAll(async () => {
    await source.close();
    await target.close();
    await proxy.close();
    for (const directory of directories) removeDataDirectory(directory);
    await runSql(clickhouse, `drop database ${clickhouse.database}`);
  });

  test('an interrupted copy resumes, and every record is stored once', async () => {
    const interrupted = copyRecords(source, target, copied => {
      if (copied > SPREAD / 2) void proxy.set('response lost');
    });
    await expect(interrupted).rejects.toThrow(/cannot insert records/);
    expect(target.flushedUpTo('auth')).toBeGreaterThan(0);
    expect(await compareDays(source, await reopenTarget())).not.toEqual([]);
    const progress: number[] = [];
    expect(await copyRecords(source, target, copied => progress.push(copied))).toBe(SPREAD + CROWDED + 4);
    expect(progress.at(-1)).toBe(SPREAD + CROWDED + 4);
    expect(await countRows()).toEqual([SPREAD + CROWDED, SPREAD + CROWDED]);
    expect(await compareDays(source, target)).toEqual([]);
  });

  const reopenTarget = async () => {
    await proxy.set('none');
    await target.close();
    target = await openTarget();
    return target;
  };

  test('a second copy stores nothing', async () => {
    await copyRecords(source, target, () => {});
    expect(await countRows()).toEqual([SPREAD + CROWDED, SPREAD + CROWDED]);
  });

  test('large records are copied in slices of about applyBatchBytes, from many minutes or from one', async () => {
    const message = 'x'.repeat(33_000);
    const large = (id: string, minute: number) =>
      record({ id: `${id}${minute}`, at: START + BigInt(minute) * 60n * SECOND, message });
    const spread = Array.from({ length: LARGE - 100 }, (_, minute) => large('s', minute));
    const crowded = Array.from({ length: 100 }, (_, i) => large(`c${i}-`, 0));
    await source.append(batches('postgres', spread, crowded));
    const sizes: number[] = [];
    const apply: Store['apply'] = records => {
      sizes.push(records.lines.length);
      return target.apply(records);
    };
    const applyBatchBytes = 400_000;
    await copyRecords(source, { ...target, applyBatchBytes, apply }, () => {});
    expect(sizes.length).toBeGreaterThan(8);
    expect(Math.max(...sizes)).toBeLessThan(4 * applyBatchBytes);
    expect(await compareDays(source, target)).toEqual([]);
  });

  test('an extra or changed record is found by kind and day', async () => {
    await runSql(
      clickhouse,
      "insert into rest_logs (id, timestamp, project, event_message, metadata) values ('x', 1794000000000000, 'p', 'm', '{}')",
    );
    const differences = await compareDays(source, target);
    expect(differences).toMatchObject([{ kind: 'rest', day: '2026-11-06', source: 'none' }]);
    await runSql(clickhouse, 'truncate table rest_logs');
    await runSql(clickhouse, "insert into edge_logs select concat(id, '!'), * except id from edge_logs");
    expect(await compareDays(source, target)).toMatchObject([{ kind: 'edge', day: '2026-11-10' }]);
  });

  test('dendro migrate copies the records, verifies them and reports their number', async () => {
    await source.close();
    const other = await createDatabase();
    const [host] = other.urls.map(url => new URL(url).host);
    const to = `clickhouse://${other.writer.user}:${other.writer.password}@${host}/${other.database}`;
    const args = ['migrate', '--from', `duckdb:${sourceDirectory}`];
    const { stdout, stderr, code } = await runDendro(args, { env: { DENDRO_TO: to } });
    expect({ stdout, stderr, code }).toEqual({
      stdout: `${SPREAD + CROWDED + 4 + LARGE} records migrated: counts and checksums match for every kind and day\n`,
      stderr: '',
      code: 0,
    });
    source = await openStore(testStoreOptions(sourceDirectory));
  });
});

describe('a server with ClickHouse on a migrated data directory', () => {
  const dataDirectory = createDataDirectory();
  let clickhouse: ClickHouseUrl;
  let clickhouseUrl: string;
  beforeAll(async () => {
    clickhouse = await createDatabase();
    const { user, password } = clickhouse.writer;
    clickhouseUrl = `clickhouse://${user}:${password}@${new URL(clickhouse.urls[0] ?? '').host}/${clickhouse.database}`;
  });
  afterAll(async () => {
    removeDataDirectory(dataDirectory);
    await runSql(clickhouse, `drop database ${clickhouse.database}`);
  });

  const migrate = () =>
    runDendro(['migrate', '--from', `duckdb:${dataDirectory}`], { env: { DENDRO_TO: clickhouseUrl } });
  /** Starts a server, sends it records with these ids, waits for `beforeStop`, and stops it. */
  const ingest = async (storeUrl: string, ids: readonly string[], beforeStop = async () => {}) => {
    const env = { DENDRO_STORE: storeUrl, DENDRO_API_KEY: PROCESS_API_KEY };
    const server = await startServer(['--data', dataDirectory], { env });
    try {
      const { status } = await fetch(`${server.internalUrl}/api/logs?source_name=edge`, {
        method: 'POST',
        headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/json' },
        body: JSON.stringify(ids.map(id => ({ id, project: 'p', event_message: 'm' }))),
      });
      expect(status).toBe(200);
      await beforeStop();
    } finally {
      await server.stop();
    }
  };
  const readIds = async () => (await runSql(clickhouse, 'select id from edge_logs order by id')).flat();

  test('stores every record once after several migrations', async () => {
    await ingest('duckdb', ['a', 'b', 'c']);
    expect((await migrate()).stdout).toMatch(/^3 records migrated: /);
    await ingest('duckdb', ['d']);
    expect((await migrate()).stdout).toMatch(/^4 records migrated: /);
    expect((await migrate()).stdout).toMatch(/^4 records migrated: /);
    await ingest('duckdb', ['e']); // not migrated: the next server reads it from the spool
    await ingest(clickhouseUrl, ['f'], () => expect.poll(readIds, { timeout: 20_000 }).toContain('f'));
    expect(await readIds()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  test('makes another migration fail without storing anything', async () => {
    expect(await migrate()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('nothing was migrated'),
    });
    expect(await readIds()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });
});
