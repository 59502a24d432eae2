import { afterEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { useDirectory } from '../support/hooks.ts';
import { edgeRecord } from '../support/record.ts';

const AT = '2026-11-14T12:00:00Z';
const directory = useDirectory();
let app: TestApp;
const start = async (memoryLimit: string) => {
  app = await startTestApp({
    store: { ...testStoreOptions(directory), memoryLimit },
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
});
