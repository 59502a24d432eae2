import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { replaySpool } from '../../src/intake/applier.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { reportFault, sized } from '../support/fault-report.ts';
import { createTempDirectory, PROCESS_API_KEY, runDendro, startServer } from '../support/process.ts';
import { savedQuery } from '../support/store.ts';

const PROJECT = 'qkzvxwyjfhbg';
const KILLS = sized(4, 20);
/** About the time of an erasure. */
const MAX_DELAY_MS = 800;
const RECORDS = 2_000;

test('a server that is killed during erasures finishes them at the next start and keeps other projects', async () => {
  const { path, remove } = createTempDirectory();
  try {
    const create = ['token', 'create', '--name', 'admin', '--scope', 'admin', '--data', path];
    const token = /dnd_\S+/.exec((await runDendro(create)).stdout)?.[0] ?? '';
    const serve = () => startServer(['--data', path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    for (let kill = 0; kill <= KILLS; kill++) {
      const server = await serve();
      const request = (route: string, key: string, init: RequestInit = {}) =>
        fetch(`${server.internalUrl}${route}`, { ...init, headers: { 'X-API-KEY': key } });
      const state = async () =>
        ((await (await request('/api/admin/erase', token)).json()) as { result: { state: string } | null })
          .result?.state;
      await expect.poll(state, { timeout: 60_000 }).not.toBe('running'); // what the last server left
      const records = Array.from({ length: RECORDS }, (_, i) => ({
        project: i % 2 === 0 ? PROJECT : 'other',
        id: `${kill}-${i}`,
        message: `message ${i} of round ${kill}`,
      }));
      const sent = { method: 'POST', body: JSON.stringify(records) };
      expect((await request('/api/logs?source_name=edge', PROCESS_API_KEY, sent)).status).toBe(200);
      const erase = { method: 'POST', body: JSON.stringify({ project: PROJECT }) };
      expect((await request('/api/admin/erase', token, erase)).status).toBe(202);
      if (kill < KILLS) await sleep((MAX_DELAY_MS * kill) / KILLS);
      else await expect.poll(state, { timeout: 60_000 }).toBe('done');
      server.signal('SIGKILL');
      await server.ended;
    }
    const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
    const withText = files.filter(entry =>
      readFileSync(join(entry.parentPath, entry.name)).includes(PROJECT),
    );
    expect(withText.map(({ name }) => name)).toEqual([]);
    const store = await openStore(testStoreOptions(path));
    await replaySpool(path, store, () => {});
    const sql = 'select project, count(*), count(distinct id) from edge_logs group by project';
    const { rows } = await store.query(savedQuery(sql, ['text', 'integer', 'integer']), {});
    await store.close();
    const expected = ((KILLS + 1) * RECORDS) / 2;
    const [, count = 0, distinct = 0] = (rows[0] ?? []).map(Number);
    reportFault({
      fault: 'kill -9 during an erasure',
      runs: KILLS,
      outcome: `the next start finishes the erasure; files that still contain the project's name: ${withText.length}`,
      lost: expected - distinct,
      duplicated: count - distinct,
    });
    expect(rows).toEqual([['other', expected, expected]]);
  } finally {
    remove();
  }
});
