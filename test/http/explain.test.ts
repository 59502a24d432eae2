import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { BUILT_IN, SLEEP, testEndpoint } from '../support/custom-endpoints.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp, useEndpoints, useTokens } from '../support/use-app.ts';

const EXPLAIN = '/api/endpoints/explain';
const QUERY = '/api/endpoints/query';
const LOGS_ALL_ID = '36d4086c-7022-4186-9a0f-e33ec7d730da';

const PINNED = 'len($pinned_projects) = 0 or list_contains($pinned_projects, project)';
const CUSTOM_EXPLAIN = `
select null::timestamp as window_start, null::timestamp as window_end, max(timestamp) as newest, min(timestamp) as oldest,
  case when len($pinned_projects) > 0 then count(*) end as project,
  count(*) filter (path = $path) as path, null::integer as never
from edge_logs where ${PINNED}`;

/** Has no parameter `project`, and a condition of its own. */
const CUSTOM = testEndpoint('custom.paths', {
  parameters: { path: {} },
  columns: { count: 'integer' },
  more: { applies_pin: true, explain: ['project', 'path', 'never'] },
  sql: `select count(*) as count from edge_logs where path = $path and (${PINNED})`,
  explain: CUSTOM_EXPLAIN,
});

const GROUPED = testEndpoint('custom.grouped', {
  parameters: { path: {} },
  columns: { count: 'integer' },
  more: { explain: ['project', 'path', 'never'] },
  sql: 'select count(*) as count from edge_logs where path = $path',
  explain: `${CUSTOM_EXPLAIN} group by project`,
});

// The clock is fixed at 2026-11-14T12:34:56.789012Z.
describe('GET /api/endpoints/explain', () => {
  const custom = useEndpoints({ sleep: SLEEP, custom: CUSTOM, grouped: GROUPED });
  const tokens = useTokens({
    all: {},
    logs: { scopes: ['query:logs.all'] },
    machine: { scopes: ['ingest', 'metrics'] },
    alpha: { projects: ['alpha'] },
    both: { projects: ['alpha', 'beta'] },
    slow: { rate: 1e-6 },
  });
  const app = useApp({
    tokensFile: tokens.file,
    cacheBytes: 1024 * 1024,
    endpointFolders: { builtIn: BUILT_IN, custom: custom.folder },
  });
  beforeAll(async () => {
    // The records of beta imitate those of alpha: their URLs and functions name alpha.
    await app.append('edge', [
      edgeRecord({ project: 'alpha', at: '2026-11-14T12:20:00Z', path: '/a' }),
      ...Array.from({ length: 7 }, () =>
        edgeRecord({
          project: 'beta',
          at: '2026-11-14T12:30:00Z',
          path: '/a',
          url: 'https://alpha.example/a',
        }),
      ),
    ]);
    await app.append('function_edge', [
      functionEdgeRecord({ project: 'alpha', at: '2026-11-14T12:20:00Z' }),
      ...Array.from({ length: 7 }, () =>
        functionEdgeRecord({ project: 'beta', at: '2026-11-14T12:30:00Z', functionId: 'alpha' }),
      ),
    ]);
  });

  type Who = keyof typeof tokens.secrets | 'none' | 'wrong' | 'key';
  const send = (path: string, who: Who, method = 'GET') => {
    const secret = { none: '', wrong: 'dnd_wrong', key: API_KEY, ...tokens.secrets }[who];
    return app.get(path, { method, headers: { 'X-API-KEY': secret } });
  };

  test.each(['logs.all', LOGS_ALL_ID, LOGS_ALL_ID.toUpperCase()])(
    'explains an endpoint by name or UUID: %s',
    async name => {
      const { status, headers, text } = await send(`${EXPLAIN}/${name}?project=alpha`, 'logs');
      expect(status).toBe(200);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('dendro-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      const head = await send(`${EXPLAIN}/${name}?project=alpha`, 'logs', 'HEAD');
      expect([head.status, head.text]).toEqual([200, '']);
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
      const keys = 'parameters window newest oldest conditions summary';
      expect(Object.keys(JSON.parse(text).result).join(' ')).toBe(keys);
    },
  );

  test.each<[string, string, Who, string, number]>([
    ['path before method', `${EXPLAIN}/`, 'none', 'POST', 404],
    ['method before token', `${EXPLAIN}/logs.all`, 'none', 'POST', 405],
    ['token before endpoint', `${EXPLAIN}/no.such`, 'none', 'GET', 401],
    ['token before parameters', `${EXPLAIN}/logs.all?format=xml`, 'wrong', 'GET', 401],
    ['endpoint before parameters', `${EXPLAIN}/no.such?format=xml`, 'all', 'GET', 404],
    ['scope before a missing endpoint', `${EXPLAIN}/no.such`, 'logs', 'GET', 403],
    ['scope before a missing explanation', `${EXPLAIN}/test.sleep`, 'logs', 'GET', 403],
    ['scope before parameters', `${EXPLAIN}/usage.api-counts?format=xml`, 'machine', 'GET', 403],
    ['a missing explanation before parameters', `${EXPLAIN}/test.sleep?format=xml`, 'all', 'GET', 404],
    ['a rate, not yet used up', `${EXPLAIN}/no.such`, 'slow', 'GET', 404],
    ['a used up rate before the endpoint', `${EXPLAIN}/no.such`, 'slow', 'GET', 429],
    ['parameters before the pin', `${EXPLAIN}/usage.api-counts?project=beta&interval=x`, 'alpha', 'GET', 400],
    ['the pin last', `${EXPLAIN}/usage.api-counts?project=beta&interval=daily`, 'alpha', 'GET', 403],
  ])('checks %s', async (_, path, who, method, status) => {
    const { status: found, error } = await send(path, who, method);
    expect(found).toBe(status);
    if (path.includes('test.sleep') && status === 404)
      expect(error.message).toBe(
        'the endpoint test.sleep has no explanation: its folder has no explain SQL for this store',
      );
  });

  test.each([
    'logs.all',
    'logs.all?project=a&iso_timestamp_start=yesterday',
    'logs.all?project=a&format=xml',
    'logs.all?project=a&timestamps=unix',
    'usage.api-counts?project=a&interval=yearly',
    'usage.api-counts?project=(&interval=daily',
    'usage.api-counts?project=a%5Bab%5D%7B200%7Dz&interval=daily',
  ])('bad parameters get the error of the query route: %s', async target => {
    const explained = await send(`${EXPLAIN}/${target}`, 'all');
    expect(explained.status).toBe(400);
    expect(explained.text).toBe((await send(`${QUERY}/${target}`, 'all')).text);
  });

  test('is JSON with ISO 8601 times, whatever format and timestamps a query would have', async () => {
    const path = `${EXPLAIN}/logs.all?project=alpha`;
    const { text } = await send(`${path}&format=csv&timestamps=iso`, 'all');
    expect(text).toBe((await send(path, 'all')).text);
    expect(JSON.parse(text).result.newest).toBe('2026-11-14T12:20:00Z');
  });

  const ENDPOINTS = ['logs.all?', 'usage.api-counts?interval=daily&', 'functions.invocation-stats?'];

  test.each(ENDPOINTS)('a pinned token learns nothing about other projects: %s', async target => {
    const { status, text } = await send(`${EXPLAIN}/${target}project=alpha`, 'alpha');
    expect(status).toBe(200);
    const others = { project: 'gamma', at: '2026-11-14T12:34:00Z' };
    await app.append('edge', [edgeRecord({ ...others, url: 'https://alpha.example/a' })]);
    await app.append('function_edge', [functionEdgeRecord(others)]);
    expect((await send(`${EXPLAIN}/${target}project=alpha`, 'alpha')).text).toBe(text);
    const { conditions, newest, oldest } = JSON.parse(text).result;
    expect(new Set(conditions.map(({ remaining }: { remaining: number }) => remaining))).toEqual(
      new Set([1]),
    );
    expect([newest, oldest]).toEqual(['2026-11-14T12:20:00Z', '2026-11-14T12:20:00Z']);
    expect((await send(`${EXPLAIN}/${target}project=beta`, 'both')).text).toContain('"remaining":7');
    for (const project of ['beta', 'ALPHA', 'alph.', 'nobody']) {
      const refused = await send(`${EXPLAIN}/${target}project=${project}`, 'alpha');
      expect([refused.status, refused.error.param]).toEqual([403, 'project']);
    }
  });

  test('an endpoint without a parameter project explains the records of all projects of the token', async () => {
    const conditionsOf = async (who: Who, path: string) =>
      JSON.parse((await send(`${EXPLAIN}/custom.paths?path=${path}`, who)).text).result.conditions;
    expect(await conditionsOf('alpha', '/a')).toEqual([
      { name: 'project', remaining: 1 },
      { name: 'path', remaining: 1 },
    ]);
    expect((await conditionsOf('both', '/a'))[0]).toEqual({ name: 'project', remaining: 8 });
    expect(await conditionsOf('all', '/b')).toEqual([{ name: 'path', remaining: 0 }]);
  });

  test('the summary names the condition of a custom endpoint, and the window may have no bounds', async () => {
    const resultOf = async (who: Who) =>
      JSON.parse((await send(`${EXPLAIN}/custom.paths?path=/none`, who)).text).result;
    expect(await resultOf('all')).toMatchObject({
      window: { start: null, end: null },
      summary: '0 rows: no edge record meets the condition path; the newest is from 2026-11-14T12:34:00Z',
    });
    expect((await resultOf('alpha')).summary).toBe(
      "0 rows: the only record of the token's projects does not meet the condition path",
    );
    expect((await resultOf('both')).summary).toBe(
      "0 rows: of 8 records of the token's projects, none meets the condition path",
    );
  });

  test('explain SQL that does not return one row is an internal error, and the log names the file and the endpoint', async () => {
    expect((await send(`${EXPLAIN}/custom.grouped?path=/a`, 'all')).status).toBe(500);
    expect(app.events.findLast(({ type }) => type === 'request_failed')).toMatchObject({
      route: `${EXPLAIN}/*`,
      endpoint: 'custom.grouped',
      error: { message: expect.stringContaining('explain.duckdb.sql did not return exactly one row') },
    });
  });
});
