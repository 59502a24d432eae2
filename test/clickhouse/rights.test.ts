import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ClickHouseUrl, parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { applyClickHouseSchema, openStore } from '../../src/store/open-store.ts';
import { startTestApp, testStoreOptions } from '../support/app.ts';
import { newDatabase } from '../support/clickhouse.ts';
import { sendLogs } from '../support/logs.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';
import { ask } from './ask.ts';
import { madeUsers, RIGHTS_DATABASE, RIGHTS_PASSWORD, rightsStatements } from './fixture/users.ts';

// The users of docs/scale.md are made by the statements that stand there.

let admin: ClickHouseUrl;
let whyNot: string | undefined;
const userOf = (name: string) => ({ user: `${RIGHTS_DATABASE}_${name}`, password: RIGHTS_PASSWORD });
const dropUsers = async () => {
  for (const name of madeUsers().keys()) await ask(admin, `drop user if exists ${name}`);
};

beforeAll(async () => {
  admin = { ...newDatabase(), database: 'default' };
  try {
    await dropUsers();
    for (const statement of rightsStatements()) await ask(admin, statement);
  } catch (error) {
    if (!process.env['DENDRO_TEST_CLICKHOUSE'] || !/privileges|access storage/.test(String(error)))
      throw error;
    whyNot = `RIGHTS ARE NOT TESTED: ${admin.writer.user} may not make users on this server`;
    process.stderr.write(`${whyNot}\n`);
    return;
  }
  admin = { ...admin, database: RIGHTS_DATABASE };
  await applyClickHouseSchema({ ...admin, writer: userOf('owner') }, 36_500);
});
afterAll(async () => {
  if (whyNot !== undefined) return;
  await dropUsers();
  await ask(admin, `drop database if exists ${RIGHTS_DATABASE}`);
});
beforeEach(({ skip }) => {
  if (whyNot !== undefined) skip(whyNot);
});

const findMissing = async (change: Partial<ClickHouseUrl>) => {
  const folder = makeDataFolder();
  const store = await openStore({ ...testStoreOptions(folder), clickhouse: { ...admin, ...change } });
  try {
    return await store.preflight?.();
  } finally {
    await store.close();
    removeDataFolder(folder);
  }
};
const documented = { reader: userOf('reader'), writer: userOf('writer') };

describe('the users of the documentation', () => {
  test('the owner can apply the schema again, with another retention', async () => {
    expect(await applyClickHouseSchema({ ...admin, writer: userOf('owner') }, 18_000)).toEqual([]);
    expect(await ask(admin, 'show create table auth_logs')).toEqual([[expect.stringContaining('(18000)')]]);
  });

  test('are enough for a service: it starts, takes records in and answers', async () => {
    const [host] = admin.urls.map(url => new URL(url).host);
    const { reader, writer } = documented;
    const written =
      `clickhouse://${reader.user}:${reader.password}@${host}/${RIGHTS_DATABASE}` +
      `?insert_user=${writer.user}&insert_password=${writer.password}`;
    const folder = makeDataFolder();
    const store = { ...testStoreOptions(folder), clickhouse: parseClickHouseUrl(written) };
    const app = await startTestApp({ store, storeName: 'clickhouse' });
    try {
      const sent = { project: 'p', event_message: 'm', timestamp: '2026-11-14T12:00:00Z' };
      expect((await sendLogs(app.internalUrl, sent, { query: '?source_name=edge' })).status).toBe(200);
      const rows = async () => (await app.query('logs.all', { project: 'p' })).rows.length;
      await expect.poll(rows, { timeout: 20_000 }).toBe(1);
      expect((await app.query('usage.api-counts', { project: 'p', interval: 'daily' })).status).toBe(200);
      expect((await app.query('usage.api-counts', { project: '(', interval: 'daily' })).status).toBe(400);
      expect((await app.query('functions.invocation-stats', { project: 'p' })).status).toBe(200);
    } finally {
      await app.close();
      removeDataFolder(folder);
    }
  });

  test.each([
    ['reader', "insert into auth_logs values ('x', 1, 'p', 'm', '{}')"],
    ['reader', 'truncate table auth_logs'],
    ['reader', 'alter table auth_logs delete where 1'],
    ['reader', `select * from system.users`],
    ['writer', 'select * from auth_logs'],
    ['writer', 'alter table auth_logs delete where 1'],
    ['writer', 'drop table auth_logs'],
    ['writer', `create table ${RIGHTS_DATABASE}.evil (a Int8) engine = Memory`],
  ])('allow the %s no more: %s', async (name, statement) => {
    const user = userOf(name);
    await expect(ask({ ...admin, reader: user, writer: user }, statement)).rejects.toThrow(
      /Not enough privileges|readonly mode/,
    );
  });
});

describe('a right that is missing is named at start', () => {
  test.each([
    ['to read one table', { reader: userOf('reader_of_one') }, /read from \(postgres_logs\).*lacks a right/],
    ['to read at all', { reader: userOf('writer') }, /read from \(edge_logs\).*lacks a right.*SELECT/],
    ['to set a limit', { reader: userOf('reader_strict') }, /read from \(edge_logs\).*readonly = 2/],
    [
      'to insert into one table',
      { writer: userOf('writer_of_one') },
      /into \(postgres_logs\).*lacks a right/,
    ],
    ['to insert at all', { writer: userOf('reader') }, /inserted into \(edge_logs\)/],
    ['to change anything', { writer: userOf('writer_read_only') }, /into \(edge_logs\).*user is read-only/],
  ])('%s', async (_, change, fault) => {
    const missing = await findMissing({ ...documented, ...change });
    expect(missing).toMatch(fault);
    expect(missing).not.toContain(RIGHTS_PASSWORD);
  });

  test('and nothing is, where nothing is missing', async () => {
    expect(await findMissing(documented)).toBeUndefined();
  });
});
