import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerProcess,
  startServer,
} from '../support/process.ts';

const PROJECT = 'qkzvxwyjfhbg';
const TEXT = 'needle-7f3a9c51';
const ENV = { DENDRO_API_KEY: PROCESS_API_KEY };

let folder: ReturnType<typeof createTempDirectory>;
let server: ServerProcess | undefined;
beforeEach(() => {
  folder = createTempDirectory();
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  folder.remove();
});

const serve = async () => {
  server = await startServer(['--data', folder.path], { env: ENV });
  return server;
};
const sendRecords = async (internalUrl: string) => {
  const records = [PROJECT, 'other'].map(project => ({
    project,
    message: `${TEXT} of ${project}`,
    id: TEXT,
  }));
  const response = await fetch(`${internalUrl}/api/logs?source_name=edge`, {
    method: 'POST',
    headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify(records),
  });
  expect(response.status).toBe(200);
};
const createAdminToken = async () => {
  const args = ['token', 'create', '--name', 'admin', '--scope', 'admin', '--data', folder.path];
  return /dnd_\S+/.exec((await runDendro(args)).stdout)?.[0] ?? '';
};
const filesWith = (text: string) =>
  readdirSync(folder.path, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name);
const query = async (project: string) => {
  const args = ['query', 'logs.all', '--project', project, '--json', '--data', folder.path];
  return JSON.parse((await runDendro(args)).stdout) as { result: unknown[] };
};

describe('dendro erase', () => {
  test('erases a project in a running server, and the environment key is not allowed to', async () => {
    const token = await createAdminToken();
    const { internalUrl } = await serve();
    await sendRecords(internalUrl);
    expect(filesWith(PROJECT)).not.toEqual([]);
    const args = ['erase', '--project', PROJECT, '--yes', '--url', internalUrl];
    const refused = await runDendro(args, { env: ENV });
    expect([refused.code, onlyLine(refused)]).toEqual([1, expect.stringContaining('403')]);
    const erased = await runDendro([...args, '--token', token]);
    expect([erased.stderr, erased.code]).toEqual(['', 0]);
    expect(erased.stdout).toBe(`erased all records of the project ${PROJECT}: 1 stored, 0 quarantined\n`);
    expect(filesWith(PROJECT)).toEqual([]);
    await server?.stop();
    expect((await query('other')).result).toHaveLength(1);
    expect((await query(PROJECT)).result).toHaveLength(0);
  });

  test('erases records that a killed server left in the spool of its data directory', async () => {
    const { internalUrl, signal, ended } = await serve();
    await sendRecords(internalUrl);
    signal('SIGKILL');
    await ended;
    expect(filesWith(PROJECT)).not.toEqual([]);
    const before = new Date(Date.now() + 60_000).toISOString();
    const erased = await runDendro([
      ...['erase', '--project', PROJECT, '--before', before, '--yes', '--data', folder.path],
    ]);
    expect([erased.stderr, erased.code]).toEqual(['', 0]);
    expect(erased.stdout).toMatch(/ from before 20\S+Z: 1 stored, 0 quarantined\n$/);
    expect(filesWith(PROJECT)).toEqual([]);
    expect((await query('other')).result).toHaveLength(1);
  });

  test.each([
    [[], /--project is required, once/],
    [['--project', 'a', '--project', 'b'], /--project is required, once/],
    [['--project', 'a', '--before', 'tomorrow', '--yes'], /--before tomorrow is not a time; allowed: /],
    [['--project', 'a'], /--yes is required, because there is no terminal to confirm on/],
    [['--project', 'a', '--yes', '--url', 'http://127.0.0.1:1'], /--url needs a token/],
    [['--project', 'a', '--yes', 'b'], /unexpected argument: b/],
  ])('dendro erase %j is a usage error', async (args, message) => {
    const outcome = await runDendro(['erase', ...args], { cwd: folder.path });
    expect([outcome.code, onlyLine(outcome)]).toEqual([2, expect.stringMatching(message)]);
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test('a data directory that does not exist is reported and not created', async () => {
    const directory = join(folder.path, 'none');
    const outcome = await runDendro(['erase', '--project', 'a', '--yes', '--data', directory]);
    expect([outcome.code, onlyLine(outcome)]).toEqual([1, `dendro: there is no data directory ${directory}`]);
  });
});
