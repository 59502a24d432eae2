import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { API_KEY, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
import { makeDataFolder, removeDataFolder, savedQuery } from '../support/store.ts';

const MIB = 1024 * 1024;

let folder: string;
let app: TestApp;
const start = async (intakeQueueBytes = 256 * MIB) => {
  app = await startTestApp({ store: testStoreOptions(folder), intakeQueueBytes });
};
beforeEach(() => {
  folder = makeDataFolder();
});
afterEach(async () => {
  await app.close();
  removeDataFolder(folder);
});

const staged = () => join(folder, 'intake', 'apply.lines');
/** The store can take nothing in as long as a folder stands where it writes what it reads. */
const breakStore = () => mkdirSync(staged());
const mendStore = () => rmSync(staged(), { recursive: true, force: true });
const send = (body: unknown, kind = 'edge') =>
  sendLogs(app.internalUrl, body, { query: `?source_name=${kind}` });
const record = (id: string, message = 'm') => ({ project: 'p', id, message });
const failures = () => app.events.filter(({ type }) => type === 'apply_failed').length;
const foldedOf = (kind: string) =>
  app.events.reduce(
    (sum, event) => sum + (event.type === 'records_applied' && event.kind === kind ? event.count : 0),
    0,
  );

describe('a store that takes nothing for a while', () => {
  test('is tried again until it does; what was acknowledged is there once, and counted once', async () => {
    await start();
    await send(record('before'));
    await expect.poll(() => idsOf(app, 'p')).toEqual(['before']);
    breakStore();
    for (let i = 0; i < 5; i++) expect((await send(record(`during-${i}`))).status).toBe(200);
    expect((await send(record('other kind'), 'auth')).status).toBe(200);
    await expect.poll(failures).toBeGreaterThan(2);
    expect(await idsOf(app, 'p')).toEqual(['before']);
    mendStore();
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(6);
    await expect.poll(() => idsOf(app, 'p', 'auth')).toEqual(['other kind']);
    await send(record('zz after'));
    await expect
      .poll(() => idsOf(app, 'p'))
      .toEqual(['before', ...[0, 1, 2, 3, 4].map(i => `during-${i}`), 'zz after']);
    await expect.poll(() => [foldedOf('edge'), foldedOf('auth')]).toEqual([7, 1]); // told once they can be seen
    const recoveries = app.events.filter(({ type }) => type === 'apply_recovered');
    expect(recoveries).toEqual([{ type: 'apply_recovered', failures: failures() }]);
  });

  test('that goes on over a restart loses nothing', async () => {
    await start();
    breakStore();
    await send([record('a'), record('b')]);
    await expect.poll(failures).toBeGreaterThan(0);
    await app.close();
    await start();
    await send(record('c'));
    await expect.poll(() => idsOf(app, 'p')).toEqual(['a', 'b', 'c']);
  });
});

test('records stand in the order in which they were acknowledged', async () => {
  await start();
  for (let i = 0; i < 30; i++) await send(record(`id-${i}`));
  await expect.poll(() => idsOf(app, 'p')).toHaveLength(30);
  const { rows } = await app.store.query(savedQuery('select id from edge_logs', ['text']), {});
  expect(rows.map(([id]) => id)).toEqual(Array.from({ length: 30 }, (_, i) => `id-${i}`));
});

test('a record that the store refuses is set aside; those before and behind it go on', async () => {
  await start();
  // Nothing that is sent over HTTP is meant to be refused: control characters make this one's line longer than the
  // store reads, since the project stands in it twice.
  const wide = { project: '\u0001'.repeat(MIB - 500), id: 'wide', message: 'm' };
  expect(await send([record('before'), wide, record('behind')])).toMatchObject({ status: 200, accepted: 3 });
  await send(record('later'));
  await expect.poll(() => idsOf(app, 'p'), { timeout: 10_000 }).toEqual(['before', 'behind', 'later']);
  const refused = app.events.filter(({ type }) => type === 'record_quarantined').length;
  const isThere = (await idsOf(app, wide.project)).length;
  expect(refused + isThere).toBe(1);
  if (refused === 1) await expect.poll(() => existsSync(join(folder, 'quarantine.ndjson'))).toBe(true);
  expect(failures()).toBe(0);
});

describe('more than --intake-queue-bytes', () => {
  const batch = (number: number) =>
    Array.from({ length: 100 }, (_, i) => record(`${number}-${i}`, 'x'.repeat(2_000)));

  test('is 429 with Retry-After and nothing of it stored; it goes on when there is room again', async () => {
    await start(MIB);
    breakStore();
    const accepted: number[] = [];
    const refused: number[] = [];
    for (let number = 0; number < 12; number++) {
      const started = performance.now();
      const { status, headers, error } = await send(batch(number));
      if (status === 200) accepted.push(number);
      else {
        expect([status, error.code]).toEqual([429, 'rate_limited']);
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
        expect(performance.now() - started).toBeLessThan(2_000);
        refused.push(number);
      }
    }
    expect(accepted.length).toBeGreaterThan(2);
    expect(refused.length).toBeGreaterThan(2);
    mendStore();
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(accepted.length * 100);
    for (const number of refused) {
      await expect.poll(async () => (await send(batch(number))).status).toBe(200);
    }
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(1_200);
    expect(new Set(await idsOf(app, 'p')).size).toBe(1_200);
  });

  test('counts bodies that are still on their way, and forgets those that broke off', async () => {
    await start(MIB);
    const slow = await openConnection(app.internalUrl);
    const headers = { 'X-API-KEY': API_KEY, 'Content-Length': String(900 * 1024) };
    slow.write(rawRequest('POST /api/logs?source_name=edge', headers, '['));
    await expect.poll(async () => (await send(batch(1))).status).toBe(429);
    expect((await send(record('small'))).status).toBe(200);
    slow.close();
    await expect.poll(async () => (await send(batch(1))).status).toBe(200);
  });
});
