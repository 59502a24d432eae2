import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { micros, startTestApp, type TestApp } from '../support/app.ts';
import { isOnClickHouse } from '../support/clickhouse.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('logs.search', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined },
    });
  }, 120_000);
  afterAll(() => app.close());

  const search = async (parameters: Record<string, string>) => {
    const response = await app.query('logs.search', parameters);
    expect([response.status, response.error?.message]).toEqual([200, undefined]);
    return response;
  };
  const idsOf = async (parameters: Record<string, string>) =>
    (await search(parameters)).rows.map(row => row['id']);

  test('returns the columns of logs.all and the kind, newest first', async () => {
    await app.append('auth', [
      record({ id: 'old', at: '2026-11-14T10:00:00Z', project: 'shape', message: 'first' }),
      record({
        id: 'new',
        at: '2026-11-14T11:00:00.123456Z',
        project: 'shape',
        message: 'second',
        metadata: { a: [1] },
      }),
    ]);
    const { text, headers } = await search({ project: 'shape', kind: 'auth' });
    expect(text).toBe(
      `{"result":[{"id":"new","timestamp":${micros('2026-11-14T11:00:00.123456Z')},"event_message":"second","metadata":{"a":[1]},"kind":"auth"},` +
        `{"id":"old","timestamp":${micros('2026-11-14T10:00:00Z')},"event_message":"first","metadata":{},"kind":"auth"}]}`,
    );
    expect(headers.get('dendro-next-cursor')).toBeNull();
    expect(headers.get('dendro-data-through')).toBe('2026-11-14T11:00:00.123456Z');
  });

  test('an absent kind is edge; each kind has its own records', async () => {
    for (const kind of LOG_KINDS) {
      const at = { id: `of-${kind}`, at: '2026-11-14T12:34:00Z', project: 'kinds' };
      const create = { edge: edgeRecord, function_edge: functionEdgeRecord }[kind as string] ?? record;
      await app.append(kind, [create(at)]);
    }
    expect(await idsOf({ project: 'kinds' })).toEqual(['of-edge']);
    expect(await idsOf({ project: 'kinds', kind: '' })).toEqual(['of-edge']);
    for (const kind of LOG_KINDS) {
      const { rows } = await search({ project: 'kinds', kind });
      expect(rows).toMatchObject([{ id: `of-${kind}`, kind }]);
    }
  });

  test.each([
    [{ kind: 'edges' }, 'kind', 'kind must be one of edge, postgres, function_edge'],
    [{ query: 'timeout "open' }, 'query', 'the quote is not closed at character 9'],
    [{ query: 'x sttus:500' }, 'query', 'there is no field sttus at character 3'],
    [
      { kind: 'realtime', query: 'status:500' },
      'query',
      'the selected log kind has no field status at character 1',
    ],
    [{ query: 'a'.repeat(1025) }, 'query', 'query is too long'],
    [{ cursor: 'abc' }, 'cursor', 'cursor is not a cursor of this query'],
    [{ cursor: 'a'.repeat(2000) }, 'cursor', 'cursor is too long'],
  ])('%j is 400 and names the parameter', async (parameters, param, message) => {
    const { status, error } = await app.query('logs.search', { project: 'p', ...parameters } as Record<
      string,
      string
    >);
    expect([status, error.code, error.param]).toEqual([400, 'invalid_parameter', param]);
    expect(error.message).toContain(message);
  });

  test('the longest allowed word is searched in a record of 1 MiB at once; a longer one is 400', async () => {
    const message = 'é'.repeat(500_000); // a word of 1,000 such characters took 20 s
    await app.append('auth', [record({ at: '2026-11-14T12:00:00Z', project: 'large', message })]);
    const find = (query: string) => app.query('logs.search', { project: 'large', kind: 'auth', query });
    expect(await find(`${'é'.repeat(127)}z`)).toMatchObject({ status: 200, rows: [] });
    const excluded = Array.from({ length: 7 }, (_, i) => `-${'é'.repeat(120)}${i}`).join(' ');
    expect((await find(excluded)).rows).toHaveLength(1);
    const { status, error } = await find(`${'é'.repeat(128)}z`);
    expect([status, error.param]).toEqual([400, 'query']);
  });

  describe('the expression', () => {
    beforeAll(async () => {
      const at = (second: number) => `2026-11-14T12:30:0${second}Z`;
      await app.append('edge', [
        edgeRecord({
          id: 'a',
          at: at(1),
          project: 'find',
          message: 'GET 200 Über alles',
          path: '/rest/v1/items',
          metadata: {
            request: { method: 'GET', host: 'a.example' },
            response: { status_code: 200 },
            note: 'x "quoted" C:\\temp',
          },
        }),
        edgeRecord({
          id: 'b',
          at: at(2),
          project: 'find',
          message: 'POST 503 timeout',
          path: '/auth/v1/token',
          metadata: { request: { method: 'POST', host: 'b.example' }, response: { status_code: '503' } },
        }),
        {
          ...edgeRecord({
            id: 'c',
            at: at(3),
            project: 'find',
            message: 'connection reset by peer',
            path: '/REST/v1*x',
          }),
          // As some senders escape it.
          metadata: '{"response": {"status_code": 500.0}, "name": "caf\\u00c9 <b>", "link": "a\\/b"}',
        },
      ]);
    });

    test.each([
      ['', 'cba'],
      ['timeout', 'b'],
      ['TIMEOUT post', 'b'],
      ['timeout get', ''],
      ['über', 'a'],
      ['"reset by"', 'c'],
      ['"by reset"', ''],
      ['-timeout', 'ca'],
      ['-timeout -"reset by"', 'a'],
      ['example', 'ba'],
      ['"x \\"QUOTED\\""', 'a'],
      ['"c:\\temp"', 'a'],
      ['café', 'c'],
      ['"CAFÉ <B>"', 'c'],
      ['a/b', 'c'],
      ['.*', ''],
      ['status:503', 'b'],
      ['status:5xx', 'cb'],
      ['-status:5xx', 'a'],
      ['status:200 status:503', 'ba'],
      ['method:post', 'b'],
      ['-method:post', 'ca'],
      ['path:/rest*', 'ca'],
      ['path:*v1*', 'cba'],
      ['path:/rest/v1', ''],
      ['path:"/rest/v1*x"', 'c'],
      ['host:A.example', 'a'],
      ['host:*', 'ba'],
      ['status:5xx -path:/auth* reset', 'c'],
    ])('%j', async (query, expected) => {
      expect((await idsOf({ project: 'find', query })).join('')).toBe(expected);
    });

    test('finds the fields of objects that are wrapped in an array of one', async () => {
      const wrapped = (id: string, metadata: string) => ({
        ...edgeRecord({ id, at: '2026-11-14T12:30:00Z', project: 'wrapped' }),
        metadata,
      });
      await app.append('edge', [
        wrapped('a', '{"request":[{"method":"GET"}],"response":[{"status_code":503}]}'),
        wrapped('b', '{ "request" : [ { "method": "PUT" } ], "response": [ { "status_code": "503" } ] }'),
        wrapped('both', '{"request":[{"method":"PUT"}],"request.method":"GET"}'),
        wrapped('flat', '{"request":[],"request.method":"GET","response":["x"]}'),
        wrapped('two', '{"request":[{"method":"GET"},{}],"response":[{"status_code":503},1]}'),
        wrapped('within', '{"request":{"x":{"method":"GET"}},"response":{"x":{"status_code":503}},"y":[]}'),
      ]);
      const project = 'wrapped';
      expect(await idsOf({ project, query: 'method:get' })).toEqual(['a', 'flat']);
      expect(await idsOf({ project, query: 'method:put' })).toEqual(['b', 'both']);
      expect(await idsOf({ project, query: 'status:5xx' })).toEqual(['a', 'b']);
      expect(await idsOf({ project, query: '-status:5xx' })).toEqual(['both', 'flat', 'two', 'within']);
      const { rows } = await app.query('logs.histogram', { project });
      expect(rows.map(row => [row['category'], row['count']])).toEqual([
        ['5xx', 2],
        ['other', 4],
      ]);
    });

    test('finds functions and levels in the fields of their kind', async () => {
      const at = { at: '2026-11-14T12:30:00Z', project: 'fields' };
      await app.append('function_edge', [
        functionEdgeRecord({ ...at, id: 'f1', functionId: 'hello', status: 500 }),
        functionEdgeRecord({ ...at, id: 'f2', functionId: 'bye', status: null }),
      ]);
      await app.append('postgres', [
        record({ ...at, id: 'p1', metadata: { parsed: { error_severity: 'ERROR' } } }),
        record({ ...at, id: 'p2', metadata: { parsed: { error_severity: 'LOG' } } }),
      ]);
      await app.append('storage', [
        record({
          ...at,
          id: 's1',
          metadata: { level: 30, req: { method: 'GET', url: '/object/x' }, res: { statusCode: 404 } },
        }),
      ]);
      const project = 'fields';
      expect(await idsOf({ project, kind: 'function_edge', query: 'function:hello' })).toEqual(['f1']);
      expect(await idsOf({ project, kind: 'function_edge', query: '-status:5xx' })).toEqual(['f2']);
      expect(await idsOf({ project, kind: 'postgres', query: 'level:error' })).toEqual(['p1']);
      expect(
        await idsOf({ project, kind: 'storage', query: 'status:4xx method:get path:/object* level:30' }),
      ).toEqual(['s1']);
    });
  });

  describe('pages', () => {
    const walk = async (parameters: Record<string, string>) => {
      const pages: string[][] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { rows, headers } = await search({ ...parameters, cursor });
        pages.push(rows.map(row => String(row['id'])));
        cursor = headers.get('dendro-next-cursor');
      }
      return pages;
    };

    test('neither lose nor repeat a record if thousands share one microsecond', async () => {
      const at = '2026-11-14T12:00:00.000001Z';
      const count = isOnClickHouse() ? 334 : 3_034; // the ClickHouse of the tests is slow
      const ids = Array.from({ length: count }, (_, i) => `id-${String(i * 7919).padStart(8, '0')}`);
      await app.append(
        'edge',
        ids.map(id => edgeRecord({ id, at, project: 'ties', message: 'tie' })),
      );
      const pages = await walk({ project: 'ties', query: 'tie' });
      expect(pages.map(page => page.length)).toEqual([...Array((count - 34) / 100).fill(100), 34]);
      expect(pages.flat()).toEqual([...ids].sort());
    }, 120_000);

    test('neither lose nor repeat a record if many share timestamp and id', async () => {
      const at = '2026-11-14T12:00:00.000001Z';
      const long = 'x'.repeat(400);
      const messages = Array.from({ length: 250 }, (_, i) => `message ${i}`);
      await app.append('edge', [
        ...messages.map(message => edgeRecord({ id: 'same', at, project: 'same', message })),
        ...messages.map((message, i) => edgeRecord({ id: `${long}${i % 10}`, at, project: 'same', message })),
      ]);
      const seen: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { rows, headers } = await search({ project: 'same', cursor });
        seen.push(...rows.map(row => `${row['id']} ${row['event_message']}`));
        cursor = headers.get('dendro-next-cursor');
      }
      expect(seen.length).toBe(500);
      expect(new Set(seen).size).toBe(500);
    }, 120_000);

    test('have no cursor after the last record', async () => {
      const records = (count: number, project: string) =>
        Array.from({ length: count }, (_, i) =>
          edgeRecord({ id: `n${i}`, at: micros('2026-11-14T12:00:00Z') + BigInt(i), project }),
        );
      await app.append('edge', [...records(100, 'exactly'), ...records(101, 'one-more')]);
      expect((await walk({ project: 'exactly' })).flat().length).toBe(100);
      const pages = await walk({ project: 'one-more' });
      expect(pages.map(page => page.length)).toEqual([100, 1]);
      expect(new Set(pages.flat()).size).toBe(101);
    }, 60_000);

    test('a changed cursor, or one of another query, is 400 and names cursor', async () => {
      const at = '2026-11-14T12:00:00Z';
      await app.append(
        'edge',
        Array.from({ length: 101 }, () => edgeRecord({ at, project: 'forged' })),
      );
      const cursor = (await search({ project: 'forged' })).headers.get('dendro-next-cursor') ?? '';
      expect(cursor).toMatch(/^[\w-]{20,}$/);
      const changed = `${cursor.slice(0, -6)}${cursor.at(-6) === 'A' ? 'B' : 'A'}${cursor.slice(-5)}`;
      const wrong = [
        { project: 'forged', cursor: changed },
        { project: 'forged', cursor: `${cursor} ` },
        { project: 'forged', cursor: cursor.slice(0, -4) },
        { project: 'forged', cursor, query: 'x' },
        { project: 'other', cursor },
        { project: 'forged', cursor, kind: 'auth' },
        { project: 'forged', cursor, project_tier: 'PRO' },
      ];
      for (const parameters of wrong) {
        const { status, error } = await app.query('logs.search', parameters as Record<string, string>);
        expect([status, error.param]).toEqual([400, 'cursor']);
      }
    });

    test('stay in the time range and in the retention of the tier', async () => {
      const ids = (parameters: Record<string, string>) => idsOf({ project: 'when', ...parameters });
      await app.append('edge', [
        edgeRecord({ id: 'future', at: '2026-11-14T13:00:00Z', project: 'when' }),
        edgeRecord({ id: 't2', at: '2026-11-14T09:00:00.000002Z', project: 'when' }),
        edgeRecord({ id: 't1', at: '2026-11-14T09:00:00.000001Z', project: 'when' }),
        edgeRecord({ id: '1d-at', at: '2026-11-13T12:34:56.789012Z', project: 'when' }),
        edgeRecord({ id: '90d-in', at: '2026-08-16T12:34:56.789013Z', project: 'when' }),
        edgeRecord({ id: '90d-at', at: '2026-08-16T12:34:56.789012Z', project: 'when' }),
      ]);
      expect(await ids({})).toEqual(['future', 't2', 't1']);
      expect(await ids({ project_tier: 'PRO' })).toEqual(['future', 't2', 't1', '1d-at']);
      expect(await ids({ project_tier: 'PAYG' })).toEqual(['future', 't2', 't1', '1d-at', '90d-in']);
      const [start, end] = ['2026-11-14T09:00:00.000001Z', '2026-11-14T09:00:00.000002Z'];
      expect(await ids({ iso_timestamp_start: start, iso_timestamp_end: end })).toEqual(['t2']);
      expect(await ids({ iso_timestamp_end: start })).toEqual(['t1']);
      expect(await ids({ iso_timestamp_start: end, iso_timestamp_end: start })).toEqual([]);
      const { headers } = await search({ project: 'when', iso_timestamp_start: '2020-01-01' });
      expect(headers.get('dendro-clipped')).toBe('retention');
    });
  });
});
