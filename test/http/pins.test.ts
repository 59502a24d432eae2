import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { type MadeTokens, makeTokens } from '../support/made-tokens.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { BUILT_IN, type OwnEndpoints, writeOwnEndpoints } from '../support/own-endpoints.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';

const QUERY = '/api/endpoints/query';
const FORMATS = ['json', 'ndjson', 'csv'];

/** Counts every project's records: its author did not think of pinned tokens. */
const UNPINNED_ENDPOINT = {
  yaml: `
id: 7f6f8a52-3c0c-4b8e-9d6b-0a2b6b1d9c01
name: own.counts
description: Made for a test.
reads: edge
parameters:
  project: { type: text, required: true, description: Any text. }
columns:
  count: { type: integer, description: All records there are. }
cache: none
`,
  sql: 'select count(*) as count from edge_logs where $project is not null',
};

// Of two projects, alpha and beta. The records of beta do all they can to be mistaken for alpha's: their URLs, paths,
// messages and metadata name alpha. The suite's clock stands at 2026-11-14T12:34:56.789012Z.
describe('a token pinned to a project', () => {
  let own: OwnEndpoints;
  let tokens: MadeTokens<'alpha' | 'both' | 'dotted' | 'free'>;
  let app: TestApp;
  beforeAll(async () => {
    own = writeOwnEndpoints({ 'own.counts': UNPINNED_ENDPOINT });
    tokens = await makeTokens({
      alpha: { projects: ['alpha'] },
      both: { projects: ['beta', 'alpha'] },
      dotted: { projects: ['al.ha', '('] },
      free: {},
    });
    app = await startTestApp(
      {
        tokensFile: tokens.file,
        cacheBytes: 64 * 1024 * 1024,
        endpointFolders: { builtIn: BUILT_IN, custom: own.folder },
      },
      new ManualTimer(),
    );
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
  afterAll(async () => {
    await app.close();
    tokens.remove();
    own.remove();
  });

  type Who = keyof typeof tokens.secrets | 'key';
  const ask = (
    who: Who,
    name: string,
    parameters: Record<string, string>,
    init: RequestInit = {},
  ): Promise<Answer> =>
    app.get(`${QUERY}/${name}?${new URLSearchParams(parameters)}`, {
      ...init,
      headers: { 'X-API-KEY': who === 'key' ? API_KEY : tokens.secrets[who], ...init.headers },
    });
  const isHit = ({ headers }: Answer) => headers.get('cache-status')?.startsWith('dendro; hit') ?? false;

  test.each(FORMATS)('sees no byte of another project in logs.all as %s', async format => {
    const { status, text } = await ask('alpha', 'logs.all', { project: 'alpha', format });
    expect(status).toBe(200);
    expect(text).toContain('of alpha');
    expect(text).not.toMatch(/theirs|beta/i);
    // The same question does find them with a token that may see them.
    expect((await ask('both', 'logs.all', { project: 'beta', format })).text).toMatch(/THEIRS/);
  });

  /** Alpha's own: the record whose URL does not match is left out, since the value still is the pattern. */
  const OWN_COUNTS = { rest: 1, storage: 0, auth: 1, realtime: 0 };
  const ALL_COUNTS = { rest: 1, storage: 7, auth: 1, realtime: 1 };
  const countsOf = ({ rows }: Answer) => {
    const sum = (area: string) =>
      rows.reduce((total, row) => total + Number(row[`total_${area}_requests`]), 0);
    return { rest: sum('rest'), storage: sum('storage'), auth: sum('auth'), realtime: sum('realtime') };
  };

  test.each([
    ['pinned first', 'minutely', ['alpha', 'key', 'alpha', 'key'] as const],
    ['unpinned first', 'hourly', ['key', 'alpha', 'key', 'alpha'] as const],
    ['another unpinned between', 'daily', ['free', 'alpha', 'key', 'alpha'] as const],
  ])('usage.api-counts counts its own records alone, through the cache: %s', async (_, interval, callers) => {
    const answers: [Who, Answer][] = [];
    for (const who of callers)
      answers.push([who, await ask(who, 'usage.api-counts', { project: 'alpha', interval })]);
    for (const [who, answer] of answers)
      expect(countsOf(answer), who).toEqual(who === 'alpha' ? OWN_COUNTS : ALL_COUNTS);
    expect(answers.slice(2).every(([, answer]) => isHit(answer))).toBe(true);
    expect(answers[0]?.[1].headers.get('etag')).not.toBe(answers[1]?.[1].headers.get('etag'));
  });

  test.each(FORMATS)('usage.api-counts as %s holds other bytes for it than for others', async format => {
    const parameters = { project: 'alpha', interval: 'daily', format };
    const pinned = await ask('alpha', 'usage.api-counts', parameters);
    const unpinned = await ask('key', 'usage.api-counts', parameters);
    expect(unpinned.text).toMatch(/\b7\b/);
    expect(pinned.text.replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, '')).not.toMatch(/\b7\b/);
  });

  test.each([
    ['pinned first', '1day', ['alpha', 'key', 'both', 'alpha'] as const],
    ['unpinned first', '7day', ['key', 'alpha', 'both', 'key'] as const],
  ])('functions.invocation-stats too: %s', async (_, interval, callers) => {
    for (const who of callers) {
      const { rows } = await ask(who, 'functions.invocation-stats', {
        project: 'alpha',
        interval,
        function_id: 'alpha',
      });
      expect(rows, who).toMatchObject([{ count: 1, max_execution_time: 10 }]);
    }
    const { rows } = await ask('both', 'functions.invocation-stats', { project: 'beta', interval });
    expect(rows).toMatchObject([{ count: 7, max_execution_time: 99 }]);
  });

  test('a project whose name is a pattern matches as one, among its own records', async () => {
    const { rows } = await ask('dotted', 'usage.api-counts', { project: 'al.ha', interval: 'daily' });
    expect(rows).toMatchObject([{ total_realtime_requests: 1, total_storage_requests: 0 }]);
    const { status, error } = await ask('dotted', 'usage.api-counts', { project: '(', interval: 'daily' });
    expect({ status, param: error.param }).toEqual({ status: 400, param: 'project' });
  });

  const ENDPOINTS: [string, Record<string, string>][] = [
    ['logs.all', {}],
    ['usage.api-counts', { interval: 'daily' }],
    ['functions.invocation-stats', {}],
  ];

  test.each(ENDPOINTS)('%s: Dendro-Data-Through is of its own project', async (name, rest) => {
    const throughOf = async (who: Who, project: string) =>
      (await ask(who, name, { ...rest, project })).headers.get('dendro-data-through');
    expect(await throughOf('alpha', 'alpha')).toBe('2026-11-14T12:20:00Z');
    expect(await throughOf('key', 'alpha')).toBe('2026-11-14T12:30:00Z');
    expect(await throughOf('both', 'beta')).toBe('2026-11-14T12:30:00Z');
    expect(await throughOf('alpha', 'alpha')).toBe('2026-11-14T12:20:00Z');
  });

  test.each(ENDPOINTS)('%s: HEAD tells of its own answer, length and all', async (name, rest) => {
    const parameters = { ...rest, project: 'alpha', format: 'csv' };
    const get = await ask('alpha', name, parameters);
    const head = await ask('alpha', name, parameters, { method: 'HEAD' });
    expect(head.text).toBe('');
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(get.text)));
    for (const header of ['etag', 'dendro-data-through', 'content-type'])
      expect(head.headers.get(header), header).toBe(get.headers.get(header));
    expect((await ask('alpha', name, { ...rest, project: 'beta' }, { method: 'HEAD' })).status).toBe(403);
  });

  test("another's ETag does not open its answer, nor does its own open another's", async () => {
    const parameters = { project: 'alpha', interval: 'daily' };
    const etagOf = async (who: Who) =>
      (await ask(who, 'usage.api-counts', parameters)).headers.get('etag') ?? '';
    const statusWith = async (who: Who, etag: string) =>
      (await ask(who, 'usage.api-counts', parameters, { headers: { 'If-None-Match': etag } })).status;
    const [pinned, unpinned] = [await etagOf('alpha'), await etagOf('key')];
    expect(await statusWith('alpha', unpinned)).toBe(200);
    expect(await statusWith('key', pinned)).toBe(200);
    expect(await statusWith('alpha', pinned)).toBe(304);
  });

  describe.each(ENDPOINTS)('%s', (name, rest) => {
    test.each([
      'beta',
      'ALPHA',
      'alpha ',
      ' alpha',
      'alph',
      'alphaa',
      'alpha|beta',
      '.*',
      '^alpha',
      'alpha.*',
      'al.ha',
      '%',
      'álpha',
      'alpha,beta',
    ])('project=%j is 403', async project => {
      const { status, error, headers } = await ask('alpha', name, { ...rest, project });
      expect({ status, code: error.code, param: error.param }).toEqual({
        status: 403,
        code: 'forbidden',
        param: 'project',
      });
      expect(headers.get('dendro-data-through')).toBeNull();
    });

    test('a fault of a parameter is 400 before the pin is looked at', async () => {
      expect((await ask('alpha', name, rest)).error.code).toBe('missing_parameter');
      expect((await ask('alpha', name, { ...rest, project: '' })).error.code).toBe('missing_parameter');
      expect((await ask('alpha', name, { ...rest, project: 'b'.repeat(1025) })).status).toBe(400);
      expect((await ask('alpha', name, { ...rest, project: 'beta\0' })).status).toBe(400);
      const twice = await app.get(
        `${QUERY}/${name}?project=alpha&project=beta&${new URLSearchParams(rest)}`,
        {
          headers: { 'X-API-KEY': tokens.secrets.alpha },
        },
      );
      expect(twice.status).toBe(400);
    });

    test('pinned to two projects, each answer is of the one asked for', async () => {
      for (const project of ['alpha', 'beta'])
        expect((await ask('both', name, { ...rest, project })).status, project).toBe(200);
      expect((await ask('both', name, { ...rest, project: 'beta|alpha' })).status).toBe(403);
      expect((await ask('both', name, { ...rest, project: 'beta,alpha' })).status).toBe(403);
    });
  });

  test('usage.api-counts: an interval that is none, or an expression that is none, is 400 before 403', async () => {
    expect((await ask('alpha', 'usage.api-counts', { project: 'beta', interval: 'x' })).status).toBe(400);
    expect((await ask('alpha', 'usage.api-counts', { project: '(', interval: 'daily' })).status).toBe(400);
  });

  test('an endpoint that does not apply the pin is not for it, nor in its catalog', async () => {
    expect((await ask('free', 'own.counts', { project: 'alpha' })).rows).toEqual([{ count: 11 }]);
    const { status, error } = await ask('alpha', 'own.counts', { project: 'alpha' });
    expect({ status, code: error.code }).toEqual({ status: 403, code: 'forbidden' });
    const namesFor = async (who: Who, path: string) =>
      (await app.get(path, { headers: { 'X-API-KEY': who === 'key' ? API_KEY : tokens.secrets[who] } })).text;
    for (const path of ['/api/endpoints', '/openapi.json']) {
      expect(await namesFor('alpha', path)).not.toContain('own.counts');
      expect(await namesFor('free', path)).toContain('own.counts');
    }
  });
});
