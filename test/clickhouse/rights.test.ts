import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ClickHouseUrl, parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { applyClickHouseSchema, openStore } from '../../src/store/open-store.ts';
import { startTestApp, testStoreOptions } from '../support/app.ts';
import { newDatabaseUrl } from '../support/clickhouse.ts';
import { sendLogs } from '../support/logs.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';
import { testUsers, USERS_DATABASE, USERS_PASSWORD, userStatements } from './fixture/users.ts';
import { runSql } from './run-sql.ts';

// Privileges of the documented users. The statements that create them are read from the documentation (fixture/users.ts).

let admin: ClickHouseUrl;
let skipReason: string | undefined;
const userOf = (name: string) => ({ user: `${USERS_DATABASE}_${name}`, password: USERS_PASSWORD });
const dropUsers = async () => {
  for (const name of testUsers().keys()) await runSql(admin, `drop user if exists ${name}`);
};

beforeAll(async () => {
  admin = { ...newDatabaseUrl(), database: 'default' };
  try {
    await dropUsers();
    for (const statement of userStatements()) await runSql(admin, statement);
  } catch (error) {
    if (!process.env['DENDRO_TEST_CLICKHOUSE'] || !/privileges|access storage/.test(String(error)))
      throw error;
    skipReason = `PRIVILEGES ARE NOT TESTED: ${admin.writer.user} may not create users on this server`;
    process.stderr.write(`${skipReason}\n`);
    return;
  }
  admin = { ...admin, database: USERS_DATABASE };
  await applyClickHouseSchema({ ...admin, writer: userOf('owner') }, 36_500);
});
afterAll(async () => {
  if (skipReason !== undefined) return;
  await dropUsers();
  await runSql(admin, `drop database if exists ${USERS_DATABASE}`);
});
beforeEach(({ skip }) => {
  if (skipReason !== undefined) skip(skipReason);
});

const runPreflight = async (change: Partial<ClickHouseUrl>) => {
  const directory = createDataDirectory();
  const store = await openStore({ ...testStoreOptions(directory), clickhouse: { ...admin, ...change } });
  try {
    return await store.preflight?.();
  } finally {
    await store.close();
    removeDataDirectory(directory);
  }
};
const documented = { reader: userOf('reader'), writer: userOf('writer') };

describe('the documented users', () => {
  test('allow the owner to apply the schema again with another retention', async () => {
    expect(await applyClickHouseSchema({ ...admin, writer: userOf('owner') }, 18_000)).toEqual([]);
    expect(await runSql(admin, 'show create table auth_logs')).toEqual([
      [expect.stringContaining('(18000)')],
    ]);
  });

  test('are enough for a server to start, store records and run queries', async () => {
    const [host] = admin.urls.map(url => new URL(url).host);
    const { reader, writer } = documented;
    const url =
      `clickhouse://${reader.user}:${reader.password}@${host}/${USERS_DATABASE}` +
      `?insert_user=${writer.user}&insert_password=${writer.password}`;
    const directory = createDataDirectory();
    const store = { ...testStoreOptions(directory), clickhouse: parseClickHouseUrl(url) };
    const app = await startTestApp({ store, storeName: 'clickhouse' });
    try {
      const record = { project: 'p', event_message: 'm', timestamp: '2026-11-14T12:00:00Z' };
      expect((await sendLogs(app.internalUrl, record, { query: '?source_name=edge' })).status).toBe(200);
      const countRows = async () => (await app.query('logs.all', { project: 'p' })).rows.length;
      await expect.poll(countRows, { timeout: 20_000 }).toBe(1);
      expect((await app.query('usage.api-counts', { project: 'p', interval: 'daily' })).status).toBe(200);
      expect((await app.query('usage.api-counts', { project: '(', interval: 'daily' })).status).toBe(400);
      expect((await app.query('functions.invocation-stats', { project: 'p' })).status).toBe(200);
      expect(await app.store.eraseProject({ project: 'p' })).toBe(1);
    } finally {
      await app.close();
      removeDataDirectory(directory);
    }
  });

  test.each([
    ['reader', "insert into auth_logs (id, timestamp) values ('x', 1)"],
    ['reader', 'truncate table auth_logs'],
    ['reader', 'alter table auth_logs delete where 1'],
    ['reader', `select * from system.users`],
    ['writer', 'select * from auth_logs'],
    ['writer', 'alter table auth_logs drop column metadata'],
    ['writer', 'drop table auth_logs'],
    ['writer', `create table ${USERS_DATABASE}.evil (a Int8) engine = Memory`],
  ])('do not allow the %s to run: %s', async (name, statement) => {
    const user = userOf(name);
    await expect(runSql({ ...admin, reader: user, writer: user }, statement)).rejects.toThrow(
      /Not enough privileges|readonly mode/,
    );
  });
});

describe('the preflight', () => {
  test.each([
    ['to read one table', { reader: userOf('reader_of_one') }, /read from postgres_logs.*lacks a privilege/],
    ['to read at all', { reader: userOf('writer') }, /read from edge_logs.*lacks a privilege.*SELECT/],
    [
      'to change settings (readonly = 1)',
      { reader: userOf('reader_strict') },
      /read from edge_logs.*readonly = 2/,
    ],
    [
      'to insert into one table',
      { writer: userOf('writer_of_one') },
      /insert into postgres_logs.*lacks a privilege/,
    ],
    ['to insert at all', { writer: userOf('reader') }, /insert into edge_logs/],
    [
      'to insert (readonly = 2)',
      { writer: userOf('writer_read_only') },
      /insert into edge_logs.*user is read-only/,
    ],
  ])('reports a missing privilege %s', async (_, change, problem) => {
    const reported = await runPreflight({ ...documented, ...change });
    expect(reported).toMatch(problem);
    expect(reported).not.toContain(USERS_PASSWORD);
  });

  test('reports nothing for the documented users', async () => {
    expect(await runPreflight(documented)).toBeUndefined();
  });
});
