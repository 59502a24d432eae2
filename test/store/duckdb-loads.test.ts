import { hash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type LogLines, toLogLines } from '../../src/domain/log-line.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { edgeRecord } from '../support/record.ts';
import { savedQuery } from '../support/store.ts';

const NOW = micros('2026-11-14T13:00:00Z');

const dataDirectory = useDirectory();
let store: Store;
const open = async () => {
  store = await openStore(testStoreOptions(dataDirectory));
};
beforeEach(async () => {
  await open();
});
afterEach(() => store.close());

async function* twoRecords(): AsyncGenerator<LogLines> {
  yield toLogLines('edge', [edgeRecord({ id: 'a', at: NOW }), edgeRecord({ id: 'b', at: NOW })]);
}
const load = (digest: string, { source = 'edge', again = false, batches = twoRecords() } = {}) =>
  store.append(batches, {
    identify: () => ({ source, digest, fileBytes: 7 }),
    nowMicros: NOW,
    again,
  });
const count = async () =>
  Number((await store.query(savedQuery('select count(*) from edge_logs', ['integer']), {})).rows[0]?.[0]);
const FIRST = { digest: 'd', records: 2, loadedAtMicros: NOW, erased: [] };

describe('loading content into the embedded store', () => {
  test('content whose load failed is loaded completely by the next attempt', async () => {
    const failing = async function* () {
      yield* twoRecords();
      throw new Error('cannot read the rest');
    };
    await expect(load('d', { batches: failing() })).rejects.toThrow('cannot read the rest');
    expect(await load('d')).toBeUndefined();
    expect(await count()).toBe(2);
  });

  test('content without records is not remembered', async () => {
    const empty = async function* (): AsyncGenerator<LogLines> {};
    await load('d', { batches: empty() });
    expect(await load('d')).toBeUndefined();
    expect(await count()).toBe(2);
  });

  test('an erasure before any time is remembered, and each project has one entry', async () => {
    await load('d');
    for (const beforeMicros of [-(10n ** 16n), 2n, 1n])
      await store.eraseProject({ project: 'before', beforeMicros });
    await store.eraseProject({ project: 'all' });
    await store.eraseProject({ project: 'all', beforeMicros: 3n });
    await store.close();
    await open(); // reads the manifest
    const erased = [
      { projectHash: hash('sha256', 'before'), beforeMicros: 2 },
      { projectHash: hash('sha256', 'all') },
    ];
    expect(store.findLoadsOfSize('edge', 7)).toEqual([{ ...FIRST, erased }]);
  });

  test('earlier loads are found by source and file size', async () => {
    await load('d');
    expect(store.findLoadsOfSize('edge', 7)).toEqual([FIRST]);
    expect(store.findLoadsOfSize('edge', 8)).toEqual([]);
    expect(store.findLoadsOfSize('auth', 7)).toEqual([]);
  });
});
