import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { compareDays, moveRecords } from '../../src/store/migration.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { makeDatabase } from '../support/clickhouse.ts';
import { PROCESS_API_KEY, runDendro, startServer } from '../support/process.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { batches, makeDataFolder, removeDataFolder } from '../support/store.ts';
import { ask } from './ask.ts';
import { FaultyProxy } from './faulty-proxy.ts';

const START = micros('2026-11-10T23:58:30Z');
const SECOND = 1_000_000n;
/** More than one slice, a minute that has more than a slice holds, and several days. */
const SPREAD = 30_000;
const CROWDED = 45_000;
/** In one minute, and in others. */
const LARGE = 160;

describe('moving an embedded store to ClickHouse', () => {
  const folders = [makeDataFolder(), makeDataFolder()];
  const [from = '', state = ''] = folders;
  let address: ClickHouseUrl;
  let proxy: FaultyProxy;
  let source: Store;
  let target: Store;

  const openTarget = () =>
    openStore({ ...testStoreOptions(state), clickhouse: { ...address, urls: [proxy.url] } });
  const countThere = async () => (await ask(address, 'select count(), uniqExact(id) from auth_logs'))[0];

  beforeAll(async () => {
    address = await makeDatabase();
    proxy = await FaultyProxy.open(address);
    source = await openStore(testStoreOptions(from));
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
    for (const folder of folders) removeDataFolder(folder);
    await ask(address, `drop database ${address.database}`);
  });

  test('broken off in the middle, it goes on where it was, and every record is there once', async () => {
    const breaking = moveRecords(source, target, moved => {
      if (moved > SPREAD / 2) void proxy.set('answer lost');
    });
    await expect(breaking).rejects.toThrow(/could not be inserted/);
    expect(target.flushedUpTo('auth')).toBeGreaterThan(0);
    expect(await compareDays(source, await reopened())).not.toEqual([]);
    const told: number[] = [];
    expect(await moveRecords(source, target, moved => told.push(moved))).toBe(SPREAD + CROWDED + 4);
    expect(told.at(-1)).toBe(SPREAD + CROWDED + 4);
    expect(await countThere()).toEqual([SPREAD + CROWDED, SPREAD + CROWDED]);
    expect(await compareDays(source, target)).toEqual([]);
  });

  const reopened = async () => {
    await proxy.set('none');
    await target.close();
    target = await openTarget();
    return target;
  };

  test('done again, it moves nothing', async () => {
    await moveRecords(source, target, () => {});
    expect(await countThere()).toEqual([SPREAD + CROWDED, SPREAD + CROWDED]);
  });

  test('large records go in pieces of about a fold each, from many minutes or from one', async () => {
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
    await moveRecords(source, { ...target, applyBatchBytes, apply }, () => {});
    expect(sizes.length).toBeGreaterThan(8);
    expect(Math.max(...sizes)).toBeLessThan(4 * applyBatchBytes);
    expect(await compareDays(source, target)).toEqual([]);
  });

  test('a record that differs, is missing or is too many is found, by kind and day', async () => {
    await ask(address, "insert into rest_logs values ('x', 1794000000000000, 'p', 'm', '{}')");
    const differences = await compareDays(source, target);
    expect(differences).toMatchObject([{ kind: 'rest', day: '2026-11-06', here: 'none' }]);
    await ask(address, 'truncate table rest_logs');
    await ask(address, "insert into edge_logs select concat(id, '!'), * except id from edge_logs");
    expect(await compareDays(source, target)).toMatchObject([{ kind: 'edge', day: '2026-11-10' }]);
  });

  test('the command moves, verifies and says so', async () => {
    await source.close();
    const other = await makeDatabase();
    const [host] = other.urls.map(url => new URL(url).host);
    const to = `clickhouse://${other.writer.user}:${other.writer.password}@${host}/${other.database}`;
    const args = ['migrate', '--from', `duckdb:${from}`];
    const { stdout, stderr, code } = await runDendro(args, { env: { DENDRO_TO: to } });
    expect({ stdout, stderr, code }).toEqual({
      stdout: `${SPREAD + CROWDED + 4 + LARGE} records: the counts and checksums of every kind and day are the same\n`,
      stderr: '',
      code: 0,
    });
    source = await openStore(testStoreOptions(from));
  });
});

describe('a server that goes on with ClickHouse in the data directory that was moved', () => {
  const dataDirectory = makeDataFolder();
  let address: ClickHouseUrl;
  let store: string;
  beforeAll(async () => {
    address = await makeDatabase();
    const { user, password } = address.writer;
    store = `clickhouse://${user}:${password}@${new URL(address.urls[0] ?? '').host}/${address.database}`;
  });
  afterAll(async () => {
    removeDataFolder(dataDirectory);
    await ask(address, `drop database ${address.database}`);
  });

  const migrate = () =>
    runDendro(['migrate', '--from', `duckdb:${dataDirectory}`], { env: { DENDRO_TO: store } });
  /** Serves, takes records in with these ids, and stops. */
  const takeIn = async (on: string, ids: readonly string[], meanwhile = async () => {}) => {
    const env = { DENDRO_STORE: on, DENDRO_API_KEY: PROCESS_API_KEY };
    const server = await startServer(['--data', dataDirectory], { env });
    try {
      const { status } = await fetch(`${server.internalUrl}/api/logs?source_name=edge`, {
        method: 'POST',
        headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/json' },
        body: JSON.stringify(ids.map(id => ({ id, project: 'p', event_message: 'm' }))),
      });
      expect(status).toBe(200);
      await meanwhile();
    } finally {
      await server.stop();
    }
  };
  const idsThere = async () => (await ask(address, 'select id from edge_logs order by id')).flat();

  test('has every record once, however often it was moved before', async () => {
    await takeIn('duckdb', ['a', 'b', 'c']);
    expect((await migrate()).stdout).toMatch(/^3 records: /);
    await takeIn('duckdb', ['d']);
    expect((await migrate()).stdout).toMatch(/^4 records: /);
    expect((await migrate()).stdout).toMatch(/^4 records: /);
    await takeIn('duckdb', ['e']); // and this one is left to the spool
    await takeIn(store, ['f'], () => expect.poll(idsThere, { timeout: 20_000 }).toContain('f'));
    expect(await idsThere()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  test('makes a further move needless, which is refused and changes nothing', async () => {
    expect(await migrate()).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing was moved') });
    expect(await idsThere()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });
});
