import { expect, test } from 'vitest';
import { BUILT_IN, documentedEndpoint } from '../support/custom-endpoints.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

// Runs the example of docs/write-endpoints.md: `npm test` on DuckDB, `npm run test:clickhouse` on ClickHouse.

const { folder: custom } = useEndpoints({ documented: documentedEndpoint() });
const app = useApp({ endpointFolders: { builtIn: BUILT_IN, custom } });

test('the example endpoint of the documentation returns the failed requests by path, within its window', async () => {
  const failed = { project: 'shop', metadata: { response: { status_code: 500 } } };
  await app.append('edge', [
    edgeRecord({ ...failed, at: '2026-11-14T12:30:00Z', path: '/b' }),
    edgeRecord({ ...failed, at: '2026-11-14T12:31:00Z', path: '/b' }),
    edgeRecord({ ...failed, at: '2026-11-14T12:32:00Z', path: '/a' }),
    edgeRecord({ ...failed, at: '2026-11-14T12:33:00Z', path: '/ok', metadata: { response: {} } }),
    edgeRecord({
      ...failed,
      at: '2026-11-14T12:33:00Z',
      path: '/odd',
      metadata: { response: { status_code: 'odd' } },
    }),
    edgeRecord({ ...failed, at: '2026-11-14T12:33:00Z', path: '/other', project: 'other' }),
    edgeRecord({ ...failed, at: '2026-11-14T01:00:00Z', path: '/early' }),
  ]);
  const rowsOf = async (period: string) =>
    (await app.query('errors.by-path', { project: 'shop', period })).rows;
  const hour = [
    { path: '/b', count: 2 },
    { path: '/a', count: 1 },
  ];
  expect(await rowsOf('hour')).toEqual(hour);
  expect(await rowsOf('day')).toEqual([...hour, { path: '/early', count: 1 }]);
});

test('the example endpoint of the documentation explains its result', async () => {
  const failed = { project: 'explained', path: '/a', metadata: { response: { status_code: 500 } } };
  await app.append('edge', [
    edgeRecord({ ...failed, at: '2026-11-14T12:30:00Z' }),
    edgeRecord({ ...failed, at: '2026-11-14T12:31:00Z', metadata: { response: {} } }),
    edgeRecord({ ...failed, at: '2026-11-14T01:00:00Z' }),
  ]);
  const { text } = await app.get('/api/endpoints/explain/errors.by-path?project=explained');
  expect(JSON.parse(text).result).toEqual({
    parameters: { project: 'explained', period: 'hour' },
    window: { start: '2026-11-14T11:34:56.789012Z', end: null },
    newest: '2026-11-14T12:31:00Z',
    oldest: '2026-11-14T01:00:00Z',
    conditions: [
      { name: 'project', remaining: 3 },
      { name: 'window', remaining: 2 },
      { name: 'status', remaining: 1 },
    ],
    summary: '1 record matches all conditions',
  });
});
