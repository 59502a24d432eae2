import { beforeAll, describe, expect, test } from 'vitest';
import { micros } from '../support/app.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { useTestApp } from '../support/hooks.ts';
import { edgeRecord, record } from '../support/record.ts';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('the explore pack', () => {
  const app = useTestApp({ endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined } });
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
});
