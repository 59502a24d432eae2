import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ClickHouseAddress } from '../../src/store-address.ts';
import { systemTimer } from '../../src/timer.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { makeDatabase } from '../support/clickhouse.ts';
import { sendLogs } from '../support/logs.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';
import { ask } from './ask.ts';

let address: ClickHouseAddress;
let dataFolder: string;
let app: TestApp;
beforeAll(async () => {
  address = await makeDatabase();
});
afterAll(() => ask(address, `drop database ${address.database}`));
beforeEach(async () => {
  dataFolder = makeDataFolder();
  const store = { ...testStoreOptions(dataFolder), clickhouse: address };
  app = await startTestApp(
    { store, storeName: 'clickhouse', tokensFile: `${dataFolder}/tokens.json` },
    systemTimer,
  );
});
afterEach(async () => {
  await app.close();
  removeDataFolder(dataFolder);
});

const idsOf = async (kind: string) => (await ask(address, `select id from ${kind}_logs order by id`)).flat();

test('a table that is gone holds up the records of its kind alone, until it is back', async () => {
  const send = (id: string, kind: string) =>
    sendLogs(app.internalUrl, { project: 'p', id, event_message: 'm' }, { query: `?source_name=${kind}` });
  await ask(address, 'rename table auth_logs to auth_logs_away');
  expect((await send('a', 'auth')).status).toBe(200);
  await expect.poll(() => app.events.some(({ type }) => type === 'fold_failed')).toBe(true);
  for (const id of ['b', 'c']) expect((await send(id, 'edge')).status).toBe(200);
  await expect.poll(() => idsOf('edge')).toEqual(['b', 'c']);
  await ask(address, 'rename table auth_logs_away to auth_logs');
  await expect.poll(() => idsOf('auth')).toEqual(['a']);
  expect(await idsOf('edge')).toEqual(['b', 'c']);
});
