import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { fetchResponse, micros } from '../support/app.ts';
import { useTestApp } from '../support/hooks.ts';
import { edgeRecord } from '../support/record.ts';

const NAME = 'edge.requests';
const ID = '5d3ac7a8-6c4e-4b0f-8d55-0b5c1b0a7e10';
const QUERY = '/api/endpoints/query';

// The endpoint is in custom-endpoints/. A custom endpoint has the same guarantees as the built-in ones. The clock of the tests is fixed at
// 2026-11-14T12:34:56.789012Z.
describe('a custom endpoint', () => {
  const app = useTestApp({
    endpointFolders: {
      builtIn: join(import.meta.dirname, '../../endpoints'),
      custom: join(import.meta.dirname, 'custom-endpoints'),
    },
  });

  const appendRequests = (project: string, count: number) =>
    app.append(
      'edge',
      Array.from({ length: count }, (_, i) =>
        edgeRecord({ id: `${project}-${i}`, at: `2026-11-14T12:00:0${i}Z`, project }),
      ),
    );

  test('returns columns of every type, in the declared order', async () => {
    await app.append('edge', [
      edgeRecord({
        id: 'one',
        at: '2026-11-14T12:34:56.289012Z',
        project: 'types',
        path: '/auth/v1',
        metadata: { a: [1, null] },
      }),
    ]);
    const { text } = await app.query(NAME, { project: 'types', area: 'auth' });
    expect(text).toBe(
      `{"result":[{"id":"one","at":${micros('2026-11-14T12:34:56.289012Z')},"day":"2026-11-14T00:00:00Z",` +
        '"area":"auth","weight":2,"seconds_ago":0.5,"metadata":{"a":[1,null]}}]}',
    );
  });

  test('returns at most max_rows rows and reports the row limit', async () => {
    await appendRequests('limited', 4);
    const { rows, headers } = await app.query(NAME, { project: 'limited' });
    expect(rows.map(row => row['id'])).toEqual(['limited-0', 'limited-1', 'limited-2']);
    expect(headers.get('dendro-clipped')).toBe('row-limit');
  });

  describe('parameters', () => {
    beforeAll(() =>
      app.append('edge', [
        edgeRecord({ id: 'r', at: '2026-11-14T10:00:00Z', project: 'rules', path: '/rest/v1' }),
        edgeRecord({ id: 'a', at: '2026-11-14T11:00:00Z', project: 'rules', path: '/auth/v1' }),
      ]),
    );
    const idsOf = async (parameters: Record<string, string>) =>
      (await app.query(NAME, { project: 'rules', ...parameters })).rows.map(row => row['id']);

    test('an absent optional choice binds its values as null', async () => {
      const { rows } = await app.query(NAME, { project: 'rules', area: '' });
      expect(rows).toMatchObject([
        { id: 'r', area: null, weight: null },
        { id: 'a', area: null, weight: null },
      ]);
    });

    test('a choice, a timestamp and a pattern each filter the rows', async () => {
      expect(await idsOf({ area: 'rest' })).toEqual(['r']);
      expect(await idsOf({ since: '2026-11-14T10:00:00.000001Z' })).toEqual(['a']);
      expect(await idsOf({ path_pattern: '^/auth' })).toEqual(['a']);
      expect(await idsOf({ path_pattern: '' })).toEqual(['r', 'a']);
    });

    test.each([
      ['project', '', 'missing_parameter'],
      ['project', '\0', 'invalid_parameter'],
      ['area', 'storage', 'invalid_parameter'],
      ['area', 'constructor', 'invalid_parameter'],
      ['since', 'yesterday', 'invalid_parameter'],
      ['path_pattern', '(', 'invalid_parameter'],
    ])('an invalid %s (%j) is rejected with %s', async (param, value, code) => {
      const { status, error } = await app.query(NAME, { project: 'rules', [param]: value });
      expect(status).toBe(400);
      expect(error).toMatchObject({ code, param });
    });
  });

  test('is in the catalog with the content of its definition', async () => {
    const { rows } = await app.get('/api/endpoints');
    expect(rows.map(row => row['name'])).toEqual([
      'functions.invocation-stats',
      'logs.all',
      'usage.api-counts',
      'edge.requests',
    ]);
    expect(rows.at(-1)).toMatchObject({
      id: ID,
      name: NAME,
      description: 'The requests of one project, oldest first.',
      max_rows: 3,
      sandboxing: false,
      parameters: [
        { name: 'project', type: 'text', required: true },
        { name: 'area', type: 'choice', required: false, choices: ['rest', 'auth'], fallback: null },
        { name: 'since', type: 'timestamp', required: false },
        { name: 'path_pattern', type: 'pattern', required: false },
      ],
      columns: [
        { name: 'id', type: 'text' },
        { name: 'at', type: 'unix_microseconds' },
        { name: 'day', type: 'utc_datetime' },
        { name: 'area', type: 'text' },
        { name: 'weight', type: 'integer' },
        { name: 'seconds_ago', type: 'number' },
        { name: 'metadata', type: 'json' },
      ],
    });
  });

  test('is in the OpenAPI document only if the request has a valid token', async () => {
    const paths = async (headers: Record<string, string>) => {
      const { text } = await fetchResponse(`${app.url}/openapi.json`, { headers });
      return {
        text,
        custom: `${QUERY}/${NAME}` in JSON.parse(text).paths,
        builtIn: `${QUERY}/logs.all` in JSON.parse(text).paths,
      };
    };
    const open = await paths({});
    expect(open).toMatchObject({ custom: false, builtIn: true });
    expect(open.text).not.toContain(ID);
    expect(await paths({ 'X-API-KEY': 'not a token that is known' })).toMatchObject({
      custom: false,
      builtIn: true,
    });
    expect(JSON.parse((await app.get('/openapi.json')).text).paths[`${QUERY}/${NAME}`].get).toMatchObject({
      operationId: NAME,
      parameters: [
        { name: 'project', required: true },
        { name: 'area', schema: { enum: ['rest', 'auth'] } },
        { name: 'since' },
        { name: 'path_pattern', schema: { format: 'regex' } },
        { name: 'format' },
        { name: 'timestamps' },
      ],
    });
  });
});
