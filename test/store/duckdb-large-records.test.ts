import { afterEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { useDirectory } from '../support/hooks.ts';
import { edgeRecord } from '../support/record.ts';
import { STUDIO_CONFIG } from '../support/studio-client.ts';

const AT = '2026-11-14T12:00:00Z';
const directory = useDirectory();
let app: TestApp;
const start = async (memoryLimit: string) => {
  app = await startTestApp({
    ...STUDIO_CONFIG,
    store: { ...testStoreOptions(directory), memoryLimit, threads: 2 }, // each thread takes memory
    endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined },
  });
};
afterEach(() => app.close());

const createRecords = (count: number, metadata: Record<string, unknown>) =>
  Array.from({ length: count }, (_, i) =>
    edgeRecord({ id: `n${String(i).padStart(5, '0')}`, at: AT, project: 'p', metadata }),
  );
const query = async (name: string, parameters: Record<string, string> = {}) => {
  const { status, rows, error } = await app.query(name, { project: 'p', ...parameters });
  expect([status, error?.message]).toEqual([200, undefined]);
  return rows;
};

describe('within a small memory limit', () => {
  /** Almost 1 MiB. Parsed, it takes 18 times as much memory. */
  const numbers = { request: { method: 'GET' }, values: new Array(470_000).fill(0) };

  test('records with much JSON are applied', async () => {
    await start('200MB');
    await app.store.apply({ ...toLogLines('edge', createRecords(24, numbers)), firstSequence: 0 });
    expect(await query('logs.fields', { field: 'method' })).toEqual([{ value: 'GET', count: 24 }]);
  });

  test('records with much JSON are appended', async () => {
    await start('200MB');
    await app.append('edge', createRecords(24, numbers));
    expect(await query('logs.fields', { field: 'method' })).toEqual([{ value: 'GET', count: 24 }]);
  });

  test('records with much JSON are found by a path in the metadata', async () => {
    await start('200MB');
    await app.append('edge', createRecords(24, { ...numbers, deep: { key: 'x' } }));
    const small = createRecords(100, { deep: { key: 'y' } }).map((record, i) => ({
      ...record,
      id: `s${i}`,
    }));
    await app.append('edge', small);
    const field = { field: 'deep.key' };
    expect(await query('logs.fields', field)).toEqual([
      { value: 'y', count: 100 },
      { value: 'x', count: 24 },
    ]);
    expect(await query('logs.fields', { ...field, query: 'deep.key:x -deep.other:1' })).toEqual([
      { value: 'x', count: 24 },
    ]);
    expect(
      await query('logs.fields', { ...field, query: 'kind:edge exists:metadata.deep', kind: 'all' }),
    ).toHaveLength(2);
  });

  test('several requests at the same time read records with much JSON', async () => {
    await start('200MB');
    await app.append('edge', createRecords(16, { ...numbers, deep: { key: 'x' } }));
    const requests = Array.from({ length: 4 }, () => query('logs.fields', { field: 'deep.key' }));
    expect(await Promise.all(requests)).toEqual(Array(4).fill([{ value: 'x', count: 16 }]));
  });

  test('a query of Studio reads records with much JSON', async () => {
    await start('200MB');
    await app.append('edge', createRecords(24, { ...numbers, deep: { key: 'x' } }));
    const sql =
      "select d.key, count(*) as count from edge_logs, unnest(metadata) m, unnest(m.deep) d where d.key like 'x%' group by 1";
    expect(await query('logs.all', { sql })).toEqual([{ key: 'x', count: 24 }]);
  });

  test('logs.search returns a page of records of 1 MiB', async () => {
    await start('200MB');
    await app.append('edge', createRecords(60, { text: 'x'.repeat(1_000_000) }));
    const rows = await query('logs.search');
    expect(rows.map(row => row['id'])).toEqual(createRecords(rows.length, {}).map(({ id }) => id));
    expect(rows).toHaveLength(16); // the limit of a response is 16 MiB
  });

  test('logs.record returns one of many records with the same timestamp', async () => {
    await start('80MB');
    await app.append('edge', createRecords(20_000, { text: 'x'.repeat(1500) }));
    const rows = await query('logs.record', { id: 'n10000', timestamp: AT, neighbours: '1' });
    expect(rows.map(row => [row['id'], row['position']])).toEqual([
      ['n09999', 1],
      ['n10000', 0],
      ['n10001', -1],
    ]);
  });
});
