import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, type TestResponse } from '../support/app.ts';
import { BUILT_IN, testEndpoint } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp, useEndpoints, useTokens } from '../support/use-app.ts';

const QUERY = '/api/endpoints/query';
const FORMATS = ['json', 'ndjson', 'csv'];

/** Counts the records of every project: its SQL does not apply the pin. */
const UNPINNED_ENDPOINT = testEndpoint('custom.counts', {
  parameters: { project: {} },
  columns: { count: 'integer' },
  sql: 'select count(*) as count from edge_logs where $project is not null',
});

/** Has no parameter `project`: a pinned token gets the records of all its projects. */
const ENDPOINT_WITHOUT_PROJECT = testEndpoint('custom.projects', {
  parameters: { area: {} },
  columns: { project: 'text', count: 'integer' },
  isCached: true,
  more: { applies_pin: true },
  sql: `
select project, count(*) as count from edge_logs
where $area <> '' and (len($pinned_projects) = 0 or list_contains($pinned_projects, project))
group by project order by project`,
  clickhouse: `
select project, count() as count from edge_logs
where {area:String} <> ''
  and (empty({pinned_projects:Array(String)}) or has({pinned_projects:Array(String)}, project))
group by project order by project`,
});

// Two projects, alpha and beta. The records of beta imitate those of alpha: their URLs, paths,
// messages and metadata name alpha. The suite's clock is fixed at 2026-11-14T12:34:56.789012Z.
describe('a token pinned to a project', () => {
  const custom = useEndpoints({
    'custom.counts': UNPINNED_ENDPOINT,
    'custom.projects': ENDPOINT_WITHOUT_PROJECT,
  });
  const tokens = useTokens({
    alpha: { projects: ['alpha'] },
    both: { projects: ['beta', 'alpha'] },
    dotted: { projects: ['al.ha', '('] },
    free: {},
  });
  const app = useApp(
    {
      tokensFile: tokens.file,
      cacheBytes: 64 * 1024 * 1024,
      endpointFolders: { builtIn: BUILT_IN, custom: custom.folder },
    },
    new ManualTimer(),
  );
  beforeAll(async () => {
    const alpha = { at: '2026-11-14T12:20:00Z', project: 'alpha', message: 'of alpha' };
    const beta = {
      at: '2026-11-14T12:30:00Z',
      project: 'beta',
      message: 'alpha? no, THEIRS',
      metadata: { theirs: 'THEIRS' },
    };
    await app.append('edge', [
      edgeRecord({ ...alpha, path: '/rest/v1' }),
      edgeRecord({ ...alpha, path: '/auth/v1' }),
      edgeRecord({ ...alpha, path: '/rest/v1', url: 'https://elsewhere.example/rest/v1' }),
      ...Array.from({ length: 7 }, () =>
        edgeRecord({ ...beta, path: '/storage/alpha', url: 'https://alpha.example/storage/alpha?ref=alpha' }),
      ),
      edgeRecord({
        at: '2026-11-14T12:10:00Z',
        project: 'al.ha',
        url: 'https://alpha.example/realtime',
        path: '/realtime',
      }),
    ]);
    await app.append('function_edge', [
      functionEdgeRecord({ ...alpha, functionId: 'alpha', ms: 10 }),
      ...Array.from({ length: 7 }, () => functionEdgeRecord({ ...beta, functionId: 'alpha', ms: 99 })),
    ]);
  });

  type Who = keyof typeof tokens.secrets | 'key';
  const send = (
    who: Who,
    name: string,
    parameters: Record<string, string>,
    init: RequestInit = {},
  ): Promise<TestResponse> =>
    app.get(`${QUERY}/${name}?${new URLSearchParams(parameters)}`, {
      ...init,
      headers: { 'X-API-KEY': who === 'key' ? API_KEY : tokens.secrets[who], ...init.headers },
    });
  const isHit = ({ headers }: TestResponse) =>
    headers.get('cache-status')?.startsWith('dendro; hit') ?? false;

  test.each(FORMATS)('gets nothing of another project as %s', async format => {
    const { status, text } = await send('alpha', 'logs.all', { project: 'alpha', format });
    expect(status).toBe(200);
    expect(text).toContain('of alpha');
    expect(text).not.toMatch(/theirs|beta/i);
    // The same request finds them with a token that may see them.
    expect((await send('both', 'logs.all', { project: 'beta', format })).text).toMatch(/THEIRS/);
    const counts = { project: 'alpha', interval: 'daily', format };
    const withoutTimes = async (who: Who) =>
      (await send(who, 'usage.api-counts', counts)).text.replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, '');
    expect(await withoutTimes('key')).toMatch(/\b7\b/);
    expect(await withoutTimes('alpha')).not.toMatch(/\b7\b/);
  });

  /** Records of alpha. The one whose URL does not match is not counted, because the value is still the pattern. */
  const OWN_COUNTS = { rest: 1, storage: 0, auth: 1, realtime: 0 };
  const ALL_COUNTS = { rest: 1, storage: 7, auth: 1, realtime: 1 };
  const countsOf = ({ rows }: TestResponse) => {
    const sum = (area: string) =>
      rows.reduce((total, row) => total + Number(row[`total_${area}_requests`]), 0);
    return { rest: sum('rest'), storage: sum('storage'), auth: sum('auth'), realtime: sum('realtime') };
  };

  test.each([
    ['pinned first', 'minutely', ['alpha', 'key', 'alpha', 'key'] as const],
    ['unpinned first', 'hourly', ['key', 'alpha', 'key', 'alpha'] as const],
    ['another unpinned between', 'daily', ['free', 'alpha', 'key', 'alpha'] as const],
  ])(
    'usage.api-counts counts only its own records, also from the cache: %s',
    async (_, interval, callers) => {
      const responses: [Who, TestResponse][] = [];
      for (const who of callers)
        responses.push([who, await send(who, 'usage.api-counts', { project: 'alpha', interval })]);
      for (const [who, response] of responses)
        expect(countsOf(response), who).toEqual(who === 'alpha' ? OWN_COUNTS : ALL_COUNTS);
      expect(responses.slice(2).every(([, response]) => isHit(response))).toBe(true);
      expect(responses[0]?.[1].headers.get('etag')).not.toBe(responses[1]?.[1].headers.get('etag'));
    },
  );

  test.each([
    ['pinned first', '1day', ['alpha', 'key', 'both', 'alpha'] as const],
    ['unpinned first', '7day', ['key', 'alpha', 'both', 'key'] as const],
  ])(
    'functions.invocation-stats counts only its own records, also from the cache: %s',
    async (_, interval, callers) => {
      for (const who of callers) {
        const { rows } = await send(who, 'functions.invocation-stats', {
          project: 'alpha',
          interval,
          function_id: 'alpha',
        });
        expect(rows, who).toMatchObject([{ count: 1, max_execution_time: 10 }]);
      }
      const { rows } = await send('both', 'functions.invocation-stats', { project: 'beta', interval });
      expect(rows).toMatchObject([{ count: 7, max_execution_time: 99 }]);
    },
  );

  test('a project name that is a regular expression matches as one, within its own records', async () => {
    const { rows } = await send('dotted', 'usage.api-counts', { project: 'al.ha', interval: 'daily' });
    expect(rows).toMatchObject([{ total_realtime_requests: 1, total_storage_requests: 0 }]);
    const { status, error } = await send('dotted', 'usage.api-counts', { project: '(', interval: 'daily' });
    expect({ status, param: error.param }).toEqual({ status: 400, param: 'project' });
  });

  const ENDPOINTS: [string, Record<string, string>][] = [
    ['logs.all', {}],
    ['usage.api-counts', { interval: 'daily' }],
    ['functions.invocation-stats', {}],
  ];

  test.each(ENDPOINTS)('%s: the headers of GET and HEAD are those of its own project', async (name, rest) => {
    const throughOf = async (who: Who, project: string) =>
      (await send(who, name, { ...rest, project })).headers.get('dendro-data-through');
    expect(await throughOf('alpha', 'alpha')).toBe('2026-11-14T12:20:00Z');
    expect(await throughOf('key', 'alpha')).toBe('2026-11-14T12:30:00Z');
    expect(await throughOf('both', 'beta')).toBe('2026-11-14T12:30:00Z');
    const parameters = { ...rest, project: 'alpha', format: 'csv' };
    const get = await send('alpha', name, parameters);
    const head = await send('alpha', name, parameters, { method: 'HEAD' });
    expect(head.text).toBe('');
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(get.text)));
    expect(head.headers.get('dendro-data-through')).toBe('2026-11-14T12:20:00Z');
    for (const header of ['etag', 'content-type'])
      expect(head.headers.get(header), header).toBe(get.headers.get(header));
    expect((await send('alpha', name, { ...rest, project: 'beta' }, { method: 'HEAD' })).status).toBe(403);
  });

  test("a token's ETag does not match the result of a token with another pin", async () => {
    const parameters = { project: 'alpha', interval: 'daily' };
    const etagOf = async (who: Who) =>
      (await send(who, 'usage.api-counts', parameters)).headers.get('etag') ?? '';
    const statusWith = async (who: Who, etag: string) =>
      (await send(who, 'usage.api-counts', parameters, { headers: { 'If-None-Match': etag } })).status;
    const [pinned, unpinned] = [await etagOf('alpha'), await etagOf('key')];
    expect(await statusWith('alpha', unpinned)).toBe(200);
    expect(await statusWith('key', pinned)).toBe(200);
    expect(await statusWith('alpha', pinned)).toBe(304);
  });

  test.each(ENDPOINTS)(
    '%s: any other project is 403, reported with the name of the token',
    async (name, rest) => {
      const similar = [
        'beta',
        'ALPHA',
        'alpha ',
        ' alpha',
        'alph',
        'alphaa',
        'alpha|beta',
        'alpha,beta',
        'álpha',
      ];
      const patterns = ['.*', '^alpha', 'alpha.*', 'al.ha', '%'];
      const isForbidden = async (who: Who, project: string) => {
        const { status, error, headers } = await send(who, name, { ...rest, project });
        const expected = { status: 403, code: 'forbidden', param: 'project' };
        expect({ status, code: error.code, param: error.param }).toEqual(expected);
        expect(headers.get('dendro-data-through')).toBeNull();
      };
      for (const project of [...similar, ...patterns]) await isForbidden('alpha', project);
      for (const project of ['alpha', 'beta'])
        expect((await send('both', name, { ...rest, project })).status, project).toBe(200);
      for (const project of ['beta|alpha', 'beta,alpha']) await isForbidden('both', project);
    },
  );

  test.each(ENDPOINTS)('%s: an invalid parameter is 400, checked before the pin', async (name, rest) => {
    expect((await send('alpha', name, rest)).error.code).toBe('missing_parameter');
    expect((await send('alpha', name, { ...rest, project: '' })).error.code).toBe('missing_parameter');
    for (const project of ['b'.repeat(1025), 'beta\0', ...(name === 'usage.api-counts' ? ['('] : [])])
      expect((await send('alpha', name, { ...rest, project })).status).toBe(400);
    const twice = `${QUERY}/${name}?project=alpha&project=beta&${new URLSearchParams(rest)}`;
    expect((await app.get(twice, { headers: { 'X-API-KEY': tokens.secrets.alpha } })).status).toBe(400);
  });

  test.each(['query', 'explain'])(
    '%s of another project is reported with the name of the token',
    async route => {
      const init = { headers: { 'X-API-KEY': tokens.secrets.alpha } };
      expect((await app.get(`/api/endpoints/${route}/logs.all?project=beta`, init)).status).toBe(403);
      expect(app.events.findLast(({ type }) => type === 'token_refused')).toMatchObject({
        reason: 'project_not_allowed',
        route: `/api/endpoints/${route}/*`,
        tokenName: 'alpha',
      });
    },
  );

  test('an endpoint without a parameter project returns the records of all projects of the token, also from the cache', async () => {
    const expected: [Who, Record<string, number>, string][] = [
      ['key', { 'al.ha': 1, alpha: 3, beta: 7 }, '2026-11-14T12:30:00Z'],
      ['alpha', { alpha: 3 }, '2026-11-14T12:20:00Z'],
      ['both', { alpha: 3, beta: 7 }, '2026-11-14T12:30:00Z'],
      ['dotted', { 'al.ha': 1 }, '2026-11-14T12:10:00Z'],
    ];
    for (const isCached of [false, true])
      for (const [who, counts, through] of expected) {
        // A parameter `project` that the endpoint does not declare changes nothing.
        const response = await send(who, 'custom.projects', { area: 'x', project: 'beta' });
        expect(response.status).toBe(200);
        const found = Object.fromEntries(response.rows.map(row => [row['project'], row['count']]));
        expect({ who, found }).toEqual({ who, found: counts });
        expect(response.headers.get('dendro-data-through')).toBe(through);
        expect(isHit(response)).toBe(isCached);
      }
    expect((await send('alpha', 'custom.projects', { area: '' })).error.code).toBe('missing_parameter');
  });

  test('an endpoint that does not apply the pin is 403 and not in its catalog', async () => {
    expect((await send('free', 'custom.counts', { project: 'alpha' })).rows).toEqual([{ count: 11 }]);
    const { status, error } = await send('alpha', 'custom.counts', { project: 'alpha' });
    expect({ status, code: error.code }).toEqual({ status: 403, code: 'forbidden' });
    const namesFor = async (who: Who, path: string) =>
      (await app.get(path, { headers: { 'X-API-KEY': who === 'key' ? API_KEY : tokens.secrets[who] } })).text;
    for (const path of ['/api/endpoints', '/openapi.json']) {
      expect(await namesFor('alpha', path)).not.toContain('custom.counts');
      expect(await namesFor('free', path)).toContain('custom.counts');
    }
  });
});
