import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { micros } from '../support/app.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const NAME = 'edge.requests';

// The endpoint is in custom-endpoints/. A custom endpoint has the same guarantees as the built-in ones. The clock of the tests is fixed at
// 2026-11-14T12:34:56.789012Z.
describe('a custom endpoint', () => {
  const app = useApp({
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
});
