import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { createTempDirectory, PROCESS_API_KEY } from '../support/process.ts';

const BIN = join(import.meta.dirname, '../../bin/dendro');

describe('dendro demo', () => {
  const temporary = createTempDirectory();
  const workingDirectory = createTempDirectory();
  let child: ReturnType<typeof spawn>;
  let output = '';
  let ended: Promise<number | null>;
  beforeAll(async () => {
    child = spawn(
      process.execPath,
      [BIN, 'demo', '--host', '0.0.0.0', '--port', '0', '--internal-port', '0'],
      {
        cwd: workingDirectory.path,
        // The demo must use neither the operator's key nor the operator's store, nor TLS for its own traffic.
        env: {
          PATH: process.env['PATH'],
          TMPDIR: temporary.path,
          DENDRO_API_KEY: PROCESS_API_KEY,
          DENDRO_STORE: 'clickhouse://127.0.0.1:1/operators_own',
          DENDRO_INTERNAL_TLS_CERT: '/operators-own/cert.pem',
          DENDRO_INTERNAL_TLS_KEY: '/operators-own/key.pem',
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    ended = once(child, 'exit').then(([code]) => code as number | null);
    await new Promise<void>((resolve, reject) => {
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.includes('logs.all')) resolve();
      });
      void ended.then(code => reject(new Error(`ended with ${code}`)));
    });
  }, 120_000);
  afterAll(() => {
    child.kill('SIGKILL');
    temporary.remove();
    workingDirectory.remove();
  });

  const link = () => new URL(/^ +(http\S+#token=\S+)$/m.exec(output)?.[1] ?? '');
  const token = () => link().hash.slice('#token='.length);
  const query = async (path: string) =>
    (
      await fetchResponse(`${link().origin}/api/endpoints/query/${path}`, {
        headers: { 'X-API-KEY': token() },
      })
    ).rows;

  test('prints the address of its console, the start page of the project with the incident', async () => {
    expect(link().hostname).toBe('127.0.0.1'); // not 0.0.0.0, on which it listens
    expect(`${link().pathname}${link().search}`).toBe('/?project=stormy-harbor');
    const response = await fetch(link());
    expect(response.headers.get('content-type')).toContain('text/html');
    expect(token()).toMatch(/^dnd_[\w-]{43}$/);
  });

  test('prints three curl commands, each of which returns rows', async () => {
    const lines = [...output.matchAll(/^ +curl -H 'X-API-KEY: (\S+)' '(\S+)'$/gm)];
    expect(lines).toHaveLength(3);
    for (const [, key = '', url = ''] of lines)
      expect((await fetchResponse(url, { headers: { 'X-API-KEY': key } })).rows.length).toBeGreaterThan(5);
  });

  test('serves seven days of history', async () => {
    expect(await query('functions.invocation-stats?project=slow-river&interval=7day')).toHaveLength(8);
    expect(await query('usage.api-counts?project=quiet-garden&interval=daily')).toHaveLength(8);
  });

  test('adds new records while it runs', async () => {
    const newest = async () =>
      Number((await query('logs.all?project=busy-market&project_tier=FREE'))[0]?.['timestamp']);
    const before = await newest();
    await expect.poll(newest, { timeout: 60_000, interval: 500 }).toBeGreaterThan(before);
  }, 60_000);

  test('writes nothing to its working directory and does not accept DENDRO_API_KEY', async () => {
    expect(readdirSync(workingDirectory.path)).toEqual([]);
    expect(output).not.toContain(PROCESS_API_KEY);
    const response = await fetchResponse(`${link().origin}/api/endpoints`, {
      headers: { 'X-API-KEY': PROCESS_API_KEY },
    });
    expect(response.status).toBe(401);
  });

  test('removes its data when it stops', async () => {
    expect(readdirSync(temporary.path)).toHaveLength(1);
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    expect(readdirSync(temporary.path)).toEqual([]);
  });
});
