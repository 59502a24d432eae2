import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { openStore } from '../../src/store/open-store.ts';
import { micros, NOW, testStoreOptions } from '../support/app.ts';
import { record } from '../support/record.ts';
import { batches, ENDLESS, openTestStore, savedQuery, type TestStore } from '../support/store.ts';

const TEXT = 'needle-7f3a9c51';

let fixture: TestStore;
beforeEach(async () => {
  fixture = await openTestStore();
});
afterEach(() => fixture.close());

/** DuckDB does not compress texts of this length, so they are in the file as they are, in many blocks. */
const largeRecords = (project: string, text: string, count: number): LogRecord[] =>
  Array.from({ length: count }, (_, i) => ({
    ...record({ project, at: micros(NOW) + BigInt(i) }),
    id: `${text} ${randomBytes(4500).toString('base64')}`,
  }));
const countText = () => {
  let count = 0;
  for (const name of readdirSync(fixture.dataDirectory).filter(file => file.startsWith('dendro.duckdb'))) {
    const bytes = readFileSync(join(fixture.dataDirectory, name));
    for (let at = bytes.indexOf(TEXT); at !== -1; at = bytes.indexOf(TEXT, at + 1)) count++;
  }
  return count;
};
const ids = async () => (await fixture.rowsOf('select id from auth_logs', ['text'])).flat().map(String);

test('all blocks of the file that had text of the project are overwritten', async () => {
  const { store } = fixture;
  for (const kind of ['auth', 'rest'] as const)
    await store.append(
      batches(kind, [...largeRecords('erased', TEXT, 100), ...largeRecords('kept', 'kept', 10)]),
    );
  expect(countText()).toBeGreaterThan(0);
  expect(await store.eraseProject({ project: 'erased' })).toBe(200);
  expect(countText()).toBe(0);
  expect(await ids()).toEqual(Array.from({ length: 10 }, () => expect.stringMatching(/^kept/)));
});

test('the text is gone although a query read the records when they were removed', async () => {
  const { store } = fixture;
  await store.append(
    batches('auth', [...largeRecords('erased', TEXT, 100), ...largeRecords('kept', 'kept', 10)]),
  );
  expect(countText()).toBeGreaterThan(0);
  const abort = new AbortController();
  const sql = `${ENDLESS.sql}, (select count(id) from auth_logs)`;
  const query = store.query(savedQuery(sql, ['number']), {}, { signal: abort.signal }).catch(() => 'aborted');
  await new Promise(resolve => setTimeout(resolve, 300));
  const erasing = store.eraseProject({ project: 'erased' });
  await new Promise(resolve => setTimeout(resolve, 1000));
  abort.abort(new Error('enough'));
  expect(await query).toBe('aborted');
  expect(await erasing).toBe(100);
  expect(countText()).toBe(0);
  expect(await ids()).toHaveLength(10);
});

test('newestTimestamp does not return erased records, although the erasure failed after it had removed them', async () => {
  const { store } = fixture;
  await store.close();
  const impatient = await openStore({ ...testStoreOptions(fixture.dataDirectory), queryTimeoutSeconds: 1 });
  try {
    await impatient.append(batches('auth', largeRecords('erased', TEXT, 100)));
    const erasing = impatient
      .eraseProject({ project: 'erased' })
      .catch((error: unknown) => (error as Error).message);
    const count = savedQuery('select count(*) from auth_logs', ['integer']);
    while ((await impatient.query(count, {})).rows[0]?.[0] !== 0);
    const snapshot = await impatient.snapshot(() => {}); // the erasure waits for it, and then fails
    expect(await erasing).toContain('a backup is running');
    expect(await impatient.newestTimestamp('auth', 2n * micros(NOW))).toBeUndefined();
    snapshot.release();
  } finally {
    await impatient.close();
  }
});

test('a store that is closed during an erasure can be opened, and the erasure can be repeated', async () => {
  const { store, dataDirectory } = fixture;
  await store.append(
    batches('auth', [...largeRecords('erased', TEXT, 200), ...largeRecords('kept', 'kept', 50)]),
  );
  const erasing = store.eraseProject({ project: 'erased' }).catch((error: Error) => error.message);
  await new Promise(resolve => setTimeout(resolve, 50));
  await store.close();
  await erasing;
  const reopened = await openStore(testStoreOptions(dataDirectory));
  try {
    await reopened.eraseProject({ project: 'erased' });
    expect(countText()).toBe(0);
    const { rows } = await reopened.query(savedQuery('select count(*) from auth_logs', ['integer']), {});
    expect(rows).toEqual([[50]]);
  } finally {
    await reopened.close();
  }
});
