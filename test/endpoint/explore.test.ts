import { beforeAll, describe, expect, test } from 'vitest';
import { micros } from '../support/app.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('the explore pack', () => {
  const app = useApp({ endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined } });
  beforeAll(async () => {
    const request = (id: string, at: string, status: unknown, path: string, method: string) =>
      edgeRecord({
        ...{ id, at, project: 'web', path, message: `${method} ${path}` },
        metadata: { request: { method }, response: { status_code: status } },
      });
    await app.append('edge', [
      request('a', '2026-11-14T11:00:00.000001Z', 200, '/a', 'GET'),
      request('b', '2026-11-14T11:00:30Z', 503, '/a', 'GET'),
      request('c', '2026-11-14T11:00:30Z', '500', '/b', 'POST'),
      request('d', '2026-11-14T11:02:00Z', null, '/b', 'GET'),
      request('old', '2026-11-10T11:00:00Z', 404, '/old', 'GET'),
    ]);
    const line = (id: string, level: unknown) =>
      record({ id, at: '2026-11-14T11:00:00Z', project: 'web', metadata: { level } });
    await app.append('realtime', [
      line('r1', 'ERROR'),
      line('r2', 'error'),
      line('r3', { a: 1 }),
      line('r4', 7),
    ]);
    await app.append('auth', [record({ at: '2026-11-14T12:00:00Z', project: 'web-other' })]);
  }, 180_000);

  const rowsOf = async (name: string, parameters: Record<string, string>) => {
    const response = await app.query(name, parameters);
    expect([response.status, response.error?.message]).toEqual([200, undefined]);
    return response.rows;
  };
  const hour = {
    project: 'web',
    iso_timestamp_start: '2026-11-14T11:00:00Z',
    iso_timestamp_end: '2026-11-14T12:00:00Z',
  };

  test('logs.histogram counts by bucket and status class', async () => {
    const at = (time: string) => Number(micros(`2026-11-14T${time}Z`));
    const row = (time: string, category: string, count: number) => ({
      ...{ timestamp: at(time), bucket_seconds: 60, category, count },
    });
    expect(await rowsOf('logs.histogram', hour)).toEqual([
      row('11:00:00', '2xx', 1),
      row('11:00:00', '5xx', 2),
      row('11:02:00', 'other', 1),
    ]);
    expect(await rowsOf('logs.histogram', { ...hour, query: 'post' })).toEqual([row('11:00:00', '5xx', 1)]);
    const second = { ...hour, iso_timestamp_end: '2026-11-14T11:00:01Z' };
    expect(await rowsOf('logs.histogram', second)).toMatchObject([{ bucket_seconds: 0.01, count: 1 }]);
    expect(await rowsOf('logs.histogram', { project: 'web', project_tier: 'PRO' })).toMatchObject([
      { bucket_seconds: 7200, category: '4xx', count: 1 },
      { category: '2xx', count: 1 },
      { category: '5xx', count: 2 },
      { category: 'other', count: 1 },
    ]);
  });

  test('logs.histogram has small buckets even if the end is far in the future', async () => {
    const parameters = { ...hour, iso_timestamp_end: '9999-12-31T23:59:59Z' };
    expect(await rowsOf('logs.histogram', parameters)).toMatchObject([
      { bucket_seconds: 60, category: '2xx', count: 1 },
      { bucket_seconds: 60, category: '5xx', count: 2 },
      { bucket_seconds: 60, category: 'other', count: 1 },
    ]);
  });

  test('logs.histogram counts by level if the kind has no status', async () => {
    expect(await rowsOf('logs.histogram', { project: 'web', kind: 'realtime' })).toMatchObject([
      { category: '7', count: 1 },
      { category: 'error', count: 2 },
      { category: 'other', count: 1 },
    ]);
  });

  test.each([
    [
      'status',
      [
        ['200', 1],
        ['500', 1],
        ['503', 1],
      ],
    ],
    [
      'method',
      [
        ['GET', 3],
        ['POST', 1],
      ],
    ],
    [
      'path',
      [
        ['/a', 2],
        ['/b', 2],
      ],
    ],
    ['level', []],
  ])('logs.fields counts the values of %s, most frequent first', async (field, expected) => {
    const rows = await rowsOf('logs.fields', { project: 'web', field });
    expect(rows.map(({ value, count }) => [value, count])).toEqual(expected);
  });

  test('logs.fields applies the search and the time range', async () => {
    const rows = await rowsOf('logs.fields', { ...hour, field: 'path', query: 'status:5xx -method:post' });
    expect(rows).toEqual([{ value: '/a', count: 1 }]);
    expect((await app.query('logs.fields', { project: 'web', field: 'size' })).error).toMatchObject({
      param: 'field',
      message: expect.stringContaining('field: there is no field size; allowed fields: status, method, path'),
    });
  });

  test('logs.record returns a record and its neighbours, newest first', async () => {
    const timestamp = '2026-11-14T11:00:30Z';
    const positions = async (parameters: Record<string, string>) =>
      (await rowsOf('logs.record', { project: 'web', ...parameters })).map(row => [
        row['id'],
        row['position'],
      ]);
    const around = [
      ['d', 2],
      ['b', 1],
      ['c', 0],
      ['a', -1],
    ];
    expect(await positions({ id: 'c', timestamp })).toEqual(around);
    expect(await positions({ id: 'c', timestamp: String(micros(timestamp)) })).toEqual(around);
    expect(await positions({ id: 'c', timestamp, project_tier: 'PRO' })).toEqual([...around, ['old', -2]]);
    expect(await positions({ id: 'b', timestamp, neighbours: '1' })).toEqual([
      ['d', 1],
      ['b', 0],
      ['c', -1],
    ]);
    expect(await positions({ id: 'b', timestamp, neighbours: '0' })).toEqual([['b', 0]]);
    expect(await positions({ id: 'b', timestamp: '2026-11-14T11:00:31Z' })).toEqual([]);
    expect(await positions({ id: 'old', timestamp: '2026-11-10T11:00:00Z' })).toEqual([]);
    expect(await positions({ id: 'b', timestamp, kind: 'auth' })).toEqual([]);
    const [row] = await rowsOf('logs.record', { project: 'web', id: 'd', timestamp: '2026-11-14T11:02:00Z' });
    expect(row).toEqual({
      id: 'd',
      timestamp: Number(micros('2026-11-14T11:02:00Z')),
      event_message: 'GET /b',
      metadata: { request: { method: 'GET' }, response: { status_code: null } },
      kind: 'edge',
      position: 0,
    });
    for (const [name, value] of [
      ['timestamp', 'x'],
      ['neighbours', '51'],
    ] as const) {
      const { status, error } = await app.query('logs.record', {
        project: 'web',
        id: 'b',
        timestamp,
        [name]: value,
      });
      expect([status, error.param]).toEqual([400, name]);
    }
  });

  test('projects.active counts the records of all kinds by project', async () => {
    const projects = async (parameters: Record<string, string>) => rowsOf('projects.active', parameters);
    const [web, other] = [
      { project: 'web', count: 9, newest: Number(micros('2026-11-14T11:02:00Z')) },
      { project: 'web-other', count: 1, newest: Number(micros('2026-11-14T12:00:00Z')) },
    ];
    expect(await projects({})).toEqual([web, other]);
    expect(await projects({ prefix: 'web-' })).toEqual([other]);
    expect(await projects({ prefix: 'WEB' })).toEqual([]);
    expect(await projects({ prefix: '%' })).toEqual([]);
    expect(await projects({ iso_timestamp_start: '2026-11-14' })).toEqual([{ ...web, count: 8 }, other]);
    expect(await projects({ iso_timestamp_end: '2026-11-10T11:00:00Z' })).toMatchObject([
      { project: 'web', count: 1 },
    ]);
  });

  test('logs.top counts values, errors and times, also of pairs and of all kinds', async () => {
    const at = (time: string) => `2026-11-14T12:${time}Z`;
    const edge = (id: string, path: string, status: number) =>
      edgeRecord({
        ...{ id, at: at(`30:0${id}`), project: 'top', path },
        metadata: { response: { status_code: status } },
      });
    await app.append('edge', [edge('1', '/a', 200), edge('2', '/a?x=1', 503), edge('3', '/b', 404)]);
    const level = (id: string, error_severity: string) =>
      record({ id, at: at('31:00'), project: 'top', metadata: { parsed: { error_severity } } });
    await app.append('postgres', [level('4', 'FATAL'), level('5', 'LOG')]);
    const top = async (parameters: Record<string, string>) =>
      (await rowsOf('logs.top', { project: 'top', timestamps: 'iso', ...parameters })).map(Object.values);
    expect(await top({ field: 'path' })).toEqual([
      ['/a', null, 2, 1, 0.5, at('30:01'), at('30:02')],
      ['/b', null, 1, 0, 0, at('30:03'), at('30:03')],
    ]);
    expect(await top({ field: 'path', second_field: 'response.status_code', query: 'path:/a' })).toEqual([
      ['/a', '200', 1, 0, 0, at('30:01'), at('30:01')],
      ['/a', '503', 1, 1, 1, at('30:02'), at('30:02')],
    ]);
    expect(await top({ field: 'kind', kind: 'all' })).toEqual([
      ['edge', null, 3, 1, expect.closeTo(1 / 3), at('30:01'), at('30:03')],
      ['postgres', null, 2, 1, 0.5, at('31:00'), at('31:00')],
    ]);
  });

  test('logs.patterns groups masked messages and compares them with the period before', async () => {
    const messages = [
      ...['user 42 has 3 items', 'user 7 has 1,000 items', "can't open 'a b' at 10.0.0.1:5432"],
      ...[
        'id 8f3a2b1c9d is "gone" for user123',
        'GET /rest/v1/x?id=eq.482 5f0c2d5e-8f6e-4f7b-9f3a-0123456789ab',
      ],
      ...['fe80::1:2 took 12.5ms, req_AbCdEfGhIjKlMnOpQrStUv'],
    ];
    const send = (at: string, message: string, i: number) =>
      record({ id: `${at}-${i}`, at: `2026-11-14T${at}Z`, project: 'patterns', message });
    await app.append(
      'auth',
      messages.map((message, i) => send('12:00:00', message, i)),
    );
    await app.append('auth', [send('11:45:00', 'user 9 has 2 items', 0), send('11:46:00', 'other', 1)]);
    await app.append('auth', [send('11:00:00', 'fe80::1:2 took 1ms, req_x', 0)]); // before the period before
    const parameters = {
      ...{ project: 'patterns', kind: 'auth', timestamps: 'iso' },
      ...{ iso_timestamp_start: '2026-11-14T11:50:00Z', iso_timestamp_end: '2026-11-14T12:10:00Z' },
    };
    const rows = await rowsOf('logs.patterns', parameters);
    expect(rows[0]).toEqual({
      ...{ pattern: 'user * has * items', count: 2, share: expect.closeTo(2 / 6), error_count: 0 },
      ...{ count_before: 1, share_before: 0.5, sample: 'user 42 has 3 items' },
      ...{ first: '2026-11-14T12:00:00Z', last: '2026-11-14T12:00:00Z' },
    });
    expect(rows.slice(1).map(row => [row['pattern'], row['count_before'], row['share_before']])).toEqual([
      ['* took *ms, req_*', 0, 0],
      ['GET /rest/v1/x?id=eq.* *', 0, 0],
      ["can't open * at *", 0, 0],
      ['id * is * for user*', 0, 0],
    ]);
    const [{ share_before } = {}] = await rowsOf('logs.patterns', { ...parameters, iso_timestamp_start: '' });
    expect(share_before).toBeNull(); // the period before is outside the retention
  });

  test('logs.compare finds the values whose share differs most', async () => {
    const invoke = (i: number, at: string, functionId: string, status: number, region: string) =>
      functionEdgeRecord({
        ...{ id: `${at}-${i}`, at: `2026-11-14T${at}:00Z`, project: 'compare', functionId, status },
        metadata: {
          ...{
            request: { method: 'POST' },
            deployment: { 'edge/region': region },
            request_id: `r-${at}-${i}`,
          },
          ...{ function_id: functionId, response: { status_code: status } },
        },
      });
    const regions = ['eu', 'us', 'us'];
    const records = Array.from({ length: 60 }, (_, i) => {
      const isFailure = i % 3 === 0;
      const functionId = isFailure && i % 30 !== 0 ? 'checkout' : 'hello';
      return invoke(i, '12:00', functionId, isFailure ? 503 : 200, regions[i % 3] ?? '');
    });
    const earlier = Array.from({ length: 10 }, (_, i) => invoke(i, '10:00', 'hello', 503, 'us'));
    await app.append('function_edge', [...records, ...earlier]);
    const compare = async (parameters: Record<string, string>) =>
      (
        await rowsOf('logs.compare', {
          ...{ project: 'compare', kind: 'function_edge', iso_timestamp_start: '2026-11-14T11:50:00Z' },
          ...parameters,
        })
      ).map(row => Object.values(row));
    const sizes = [20, 40, 20, 40];
    expect(await compare({ query: 'status:>=500' })).toEqual([
      ['deployment."edge/region"', 'eu', 1, 0, 1, ...sizes],
      ['deployment."edge/region"', 'us', 0, 1, -1, ...sizes],
      ['function', 'checkout', 0.9, 0, 0.9, ...sizes],
      ['function', 'hello', expect.closeTo(0.1), 1, expect.closeTo(-0.9), ...sizes],
    ]);
    const range = { baseline_start: '2026-11-14T09:00:00Z', baseline_end: '2026-11-14T11:00:00Z' };
    const [first] = await compare({ query: 'status:>=500 -deployment."edge/region":x', ...range });
    expect(first).toEqual(['function', 'checkout', 0.9, 0, 0.9, 20, 10, 20, 10]);
    expect(await compare({ query: 'nothing' })).toEqual([]);
  });

  test('logs.compare reads paths as a search does', async () => {
    const failed = { request: { wrapped: [{ a: 1 }] }, plain: { b: 1 } };
    const records = Array.from({ length: 20 }, (_, i) =>
      functionEdgeRecord({
        ...{ id: `f${i}`, at: '2026-11-14T12:00:00Z', project: 'compare-paths', functionId: 'f' },
        ...{ status: i < 10 ? 500 : 200, metadata: i < 10 ? failed : {} },
      }),
    );
    await app.append('function_edge', records);
    const parameters = { project: 'compare-paths', kind: 'function_edge', query: 'status:>=500' };
    const rows = await rowsOf('logs.compare', parameters);
    expect(rows.map(row => Object.values(row))).toEqual([['plain.b', '1', 1, 0, 1, 10, 10, 10, 10]]);
  });

  test('logs.compare finds a word in records with large metadata', async () => {
    const records = Array.from({ length: 20 }, (_, i) => {
      const isLarge = i < 10;
      return functionEdgeRecord({
        ...{
          id: `l${i}`,
          at: '2026-11-14T12:00:00Z',
          project: 'compare-large',
          functionId: isLarge ? 'checkout' : 'hello',
        },
        ...{ message: isLarge ? 'needle' : 'hay', metadata: { text: 'x'.repeat(isLarge ? 20_000 : 10) } },
      });
    });
    await app.append('function_edge', records);
    const parameters = { project: 'compare-large', kind: 'function_edge', query: 'needle' };
    const [first] = await rowsOf('logs.compare', parameters);
    expect(Object.values(first ?? {})).toEqual(['function', 'checkout', 1, 0, 1, 10, 10, 10, 10]);
  });
});
