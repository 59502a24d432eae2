import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fetchAnswer } from '../support/app.ts';
import { makeFolder, PROCESS_API_KEY } from '../support/process.ts';

const BIN = join(import.meta.dirname, '../../bin/dendro');

describe('dendro demo', () => {
  const temporary = makeFolder();
  const own = makeFolder();
  let child: ReturnType<typeof spawn>;
  let output = '';
  let ended: Promise<number | null>;
  beforeAll(async () => {
    child = spawn(process.execPath, [BIN, 'demo', '--port', '0', '--internal-port', '0'], {
      cwd: own.path,
      // Neither the operator's key nor the operator's store has any part in it.
      env: {
        PATH: process.env['PATH'],
        TMPDIR: temporary.path,
        DENDRO_API_KEY: PROCESS_API_KEY,
        DENDRO_STORE: 'clickhouse://127.0.0.1:1/operators_own',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
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
    own.remove();
  });

  const link = () => new URL(/^ +(http\S+#token=\S+)$/m.exec(output)?.[1] ?? '');
  const token = () => link().hash.slice('#token='.length);
  const ask = async (query: string) =>
    (
      await fetchAnswer(`${link().origin}/api/endpoints/query/${query}`, {
        headers: { 'X-API-KEY': token() },
      })
    ).rows;

  test('prints the link to its console, which is there', async () => {
    const response = await fetch(link());
    expect(response.headers.get('content-type')).toContain('text/html');
    expect(token()).toMatch(/^dnd_[\w-]{43}$/);
  });

  test('prints three curl lines, each of which answers rows', async () => {
    const lines = [...output.matchAll(/^ +curl -H 'X-API-KEY: (\S+)' '(\S+)'$/gm)];
    expect(lines).toHaveLength(3);
    for (const [, key = '', url = ''] of lines)
      expect((await fetchAnswer(url, { headers: { 'X-API-KEY': key } })).rows.length).toBeGreaterThan(5);
  });

  test('has seven days of history', async () => {
    expect(await ask('functions.invocation-stats?project=slow-river&interval=7day')).toHaveLength(8);
    expect(await ask('usage.api-counts?project=quiet-garden&interval=daily')).toHaveLength(8);
  });

  test('its traffic goes on', async () => {
    const newest = async () =>
      Number((await ask('logs.all?project=busy-market&project_tier=FREE'))[0]?.['timestamp']);
    const before = await newest();
    await expect.poll(newest, { timeout: 60_000, interval: 500 }).toBeGreaterThan(before);
  }, 60_000);

  test('keeps its hands off what stands where it was started, and does not know the key of the environment', async () => {
    expect(readdirSync(own.path)).toEqual([]);
    expect(output).not.toContain(PROCESS_API_KEY);
    const refused = await fetchAnswer(`${link().origin}/api/endpoints`, {
      headers: { 'X-API-KEY': PROCESS_API_KEY },
    });
    expect(refused.status).toBe(401);
  });

  test('is gone with all its data when it ends', async () => {
    expect(readdirSync(temporary.path)).toHaveLength(1);
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    expect(readdirSync(temporary.path)).toEqual([]);
  });
});
