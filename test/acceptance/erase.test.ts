import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createTempDirectory,
  DENDRO_COMMAND,
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
    .filter(entry => entry.isFile() && readIfExists(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name);
/** A running server deletes files. */
function readIfExists(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
const query = async (project: string) => {
  const args = ['query', 'logs.all', '--project', project, '--json', '--data', folder.path];
  return JSON.parse((await runDendro(args)).stdout) as { result: unknown[] };
};

/** Runs the command on a terminal, which `script` creates, and presses keys when it asks. */
const pressAtPrompt = async (keys: string, args: readonly string[]) => {
  const command = [...DENDRO_COMMAND, ...args].map(argument => `'${argument}'`).join(' ');
  const child = spawn('script', ['-q', '-e', '-c', command, '/dev/null'], { cwd: folder.path });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const isPrompted = output.includes('to confirm: ');
    output += text;
    if (!isPrompted && output.includes('to confirm: ')) child.stdin.write(keys);
  });
  const [code] = await once(child, 'close');
  return { code, output };
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

  test('a command logs an interrupted erasure that fails again, and continues', async () => {
    await query(PROJECT); // creates the data directory
    writeFileSync(join(folder.path, 'erase.json'), JSON.stringify([{ project: PROJECT }]));
    mkdirSync(join(folder.path, 'quarantine.ndjson')); // in place of the file that would be rewritten
    const outcome = await runDendro(['query', 'logs.all', '--project', 'other', '--data', folder.path]);
    expect(outcome).toMatchObject({
      ...{ code: 0, stdout: 'no rows\n' },
      stderr: expect.stringMatching(/^ERASING A PROJECT FAILED;.*\n$/),
    });
  });

  test.each([
    ['Ctrl+C', '\u0003'],
    ['Ctrl+D', '\u0004'],
    ['another name', 'b\r'],
  ])('%s at the prompt erases nothing and prints one line without a stack trace', async (_, keys) => {
    const { code, output } = await pressAtPrompt(keys, ['erase', '--project', 'a', '--data', 'none']);
    expect(output).toMatch(/\ndendro: nothing was erased: not confirmed\r\n$/);
    expect(output).not.toMatch(/ {4}at /);
    expect(code).toBe(1);
  });

  test.each([
    [0, '2026-01-01T00:00:00Z'],
    [1, '2025-01-01T00:00:00Z'],
    [1, null],
  ])(
    '--before 2026-01-01 exits with %i if the server has finished an erasure before %s',
    async (code, before) => {
      // A real server would have to start another erasure between two requests of the command.
      const result = { project: 'a', records: 1, quarantined: 0, damaged_files: 0 };
      const other = createServer(({ method }, response) => {
        const status = method === 'POST' ? { state: 'running' } : { state: 'done', before };
        response.end(JSON.stringify({ result: { ...result, ...status } }));
      });
      await once(other.listen(0, '127.0.0.1'), 'listening');
      const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      try {
        const args = ['erase', '--project', 'a', '--before', '2026-01-01', '--yes', '--url', url];
        const outcome = await runDendro(args, { env: ENV });
        expect(outcome.code).toBe(code);
        if (code === 1) expect(onlyLine(outcome)).toContain('not everything was erased');
      } finally {
        other.close();
      }
    },
  );
});
