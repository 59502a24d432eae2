import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadEndpoints } from '../../src/endpoint/catalog.ts';
import { LiveCatalog } from '../../src/endpoint/live-catalog.ts';
import { API_KEY, fetchResponse, startTestApp, type TestApp } from '../support/app.ts';
import { BUILT_IN, type CustomEndpoints, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';

const endpoint = (answer: number, cache = '{ lifetime_seconds: 900, warming_seconds: 300 }') => ({
  yaml: `
id: 7f6f8a52-3c0c-4b8e-9d6b-0a2b6b1d9c90
name: custom.answer
description: An answer.
reads: edge
parameters:
  text: { type: text, description: Any text. }
columns:
  answer: { type: integer, description: A number. }
cache: ${cache}
`,
  sql: `select ${answer} as answer where coalesce($text, '') <> 'none'`,
});

describe('changed endpoint folders', () => {
  let custom: CustomEndpoints;
  let app: TestApp;
  beforeEach(async () => {
    custom = writeEndpointFolders({ answer: endpoint(1) });
    const endpointFolders = { builtIn: BUILT_IN, custom: custom.folder };
    app = await startTestApp({ cacheBytes: 1024 * 1024, endpointFolders }, new ManualTimer());
  });
  afterEach(async () => {
    await app.close();
    custom.remove();
  });

  const file = (name: string) => join(custom.folder, 'answer', name);
  const write = (name: string, content: string) => writeFileSync(file(name), content);
  const ask = async (path = 'custom.answer') => {
    const { status, rows, headers } = await app.get(`/api/endpoints/query/${path}`);
    return { status, rows, cache: headers.get('cache-status') };
  };
  /** Lets the files be checked twice: a change is loaded when it is seen for the second time. */
  const passChecks = async () => {
    await app.pass(500);
    await app.pass(500);
  };
  const rejections = () =>
    app.events.flatMap(event =>
      event.type === 'endpoints_rejected' ? [(event.error as Error).message] : [],
    );

  test('a changed file takes effect in a running server, and only cached results of the old query are dropped', async () => {
    const counts = 'usage.api-counts?project=p&interval=daily';
    await ask(counts);
    expect((await ask()).rows).toEqual([{ answer: 1 }]);
    expect((await ask()).cache).toContain('hit');
    write('duckdb.sql', endpoint(2).sql);
    await passChecks();
    await expect.poll(async () => (await ask()).rows).toEqual([{ answer: 2 }]);
    expect(app.events).toContainEqual({ type: 'endpoints_reloaded', count: 4, changed: 1 });
    expect((await ask(counts)).cache).toContain('hit');
  });

  test('a definition that changes the rules of a parameter applies to URLs that were requested before', async () => {
    expect((await ask()).status).toBe(200);
    write('endpoint.yaml', endpoint(1).yaml.replace('type: text, desc', 'type: text, required: true, desc'));
    await passChecks();
    await expect.poll(async () => (await ask()).status).toBe(400);
  });

  test.each<[string, string, () => void, string]>([
    [
      'a FIFO',
      'duckdb.sql',
      () => execFileSync('mkfifo', [file('duckdb.sql')]),
      'duckdb.sql: is not a regular file',
    ],
    [
      'a link to a device without an end',
      'duckdb.sql',
      () => symlinkSync('/dev/zero', file('duckdb.sql')),
      'duckdb.sql: is not a regular file',
    ],
    [
      'SQL of 8 GB',
      'duckdb.sql',
      () => {
        write('duckdb.sql', '');
        truncateSync(file('duckdb.sql'), 8e9);
      },
      'duckdb.sql: is larger than 1024 KiB',
    ],
    [
      'a definition with 100,000 aliases',
      'endpoint.yaml',
      () =>
        write(
          'endpoint.yaml',
          `a: [${Array.from({ length: 1e5 }, (_, i) => `&a${i} 1, *a${i}`).join(', ')}]`,
        ),
      'endpoint.yaml: is larger than 32 KiB',
    ],
  ])('%s is rejected, and the last valid endpoints are served', async (_, name, replace, problem) => {
    rmSync(file(name));
    replace();
    await passChecks();
    await expect.poll(rejections).toEqual([join(custom.folder, 'answer', problem)]);
    expect((await ask()).rows).toEqual([{ answer: 1 }]);
  });

  test('links to files are loaded, as in a mounted Kubernetes ConfigMap', async () => {
    const target = join(custom.folder, '.data.sql');
    writeFileSync(target, endpoint(2).sql);
    rmSync(file('duckdb.sql'));
    symlinkSync(target, file('duckdb.sql'));
    await passChecks();
    await expect.poll(async () => (await ask()).rows).toEqual([{ answer: 2 }]);
  });

  test('a broken definition keeps the last valid endpoints, and the log names file, line and problem', async () => {
    appendFileSync(file('endpoint.yaml'), 'max_rows: many\n');
    await passChecks();
    await expect.poll(rejections).toHaveLength(1);
    expect(rejections()[0]).toMatch(/answer\/endpoint\.yaml: max_rows: must be .* at line 11$/);
    expect((await ask()).rows).toEqual([{ answer: 1 }]);
  });

  test('broken SQL keeps the last valid endpoints, and the log names file, line and problem', async () => {
    write('duckdb.sql', "select 2 as answer\nform edge_logs where coalesce($text, '') <> ''");
    await passChecks();
    await expect.poll(rejections).toHaveLength(1);
    expect(rejections()[0]).toMatch(/answer\/duckdb\.sql: DuckDB rejects it at line 2: /);
    expect((await ask()).rows).toEqual([{ answer: 1 }]);
    write('duckdb.sql', endpoint(3).sql);
    await passChecks();
    await expect.poll(async () => (await ask()).rows).toEqual([{ answer: 3 }]);
  });

  test('an added folder becomes an endpoint with metrics, and a removed folder returns 404', async () => {
    const other = join(custom.folder, 'other');
    mkdirSync(`${custom.folder}/.other`);
    writeFileSync(join(custom.folder, '.other', 'duckdb.sql'), endpoint(7).sql);
    const yaml = endpoint(7).yaml.replace('9c90', '9c91').replace('custom.answer', 'custom.other');
    writeFileSync(join(custom.folder, '.other', 'endpoint.yaml'), yaml);
    renameSync(join(custom.folder, '.other'), other);
    await passChecks();
    await expect.poll(async () => (await ask('custom.other')).rows).toEqual([{ answer: 7 }]);
    const metrics = await fetchResponse(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
    expect(metrics.text).toContain('dendro_query_store_seconds_count{endpoint="custom.other"} 1');
    rmSync(other, { recursive: true });
    await passChecks();
    await expect.poll(async () => (await ask('custom.other')).status).toBe(404);
  });

  test('a stop cancels a running reload', async () => {
    const reload = app.reloadEndpoints();
    await Promise.all([reload, app.close()]);
    expect(app.events.filter(({ type }) => type.startsWith('endpoints_'))).toEqual([]);
  });

  test('a reload lets the server do something else after each endpoint folder, and stops there if the server stops', async () => {
    let turns = 0;
    const turnsByFolder: number[] = [];
    const catalog = new LiveCatalog({
      *load() {
        for (const loaded of loadEndpoints({ builtIn: BUILT_IN, custom: custom.folder }, app.store.name)) {
          turnsByFolder.push(turns);
          setImmediate(() => turns++);
          yield loaded;
        }
      },
      watched: undefined,
      timer: new ManualTimer(),
      observe() {},
    });
    await catalog.check(app.store);
    catalog.start({ store: app.store, onReload() {} });
    turnsByFolder.length = turns = 0;
    await catalog.reload();
    expect(turnsByFolder).toEqual([0, 1, 2, 3]);
    turnsByFolder.length = turns = 0;
    await Promise.all([catalog.reload(), catalog.close()]);
    expect(turnsByFolder).toEqual([0]);
  });

  test('reloadEndpoints loads unchanged folders without dropping cached results', async () => {
    await ask();
    await app.reloadEndpoints();
    expect(app.events).toContainEqual({ type: 'endpoints_reloaded', count: 4, changed: 0 });
    expect((await ask()).cache).toContain('hit');
  });
});
