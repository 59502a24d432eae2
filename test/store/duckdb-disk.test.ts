import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { mountSmallDisk, type SmallDisk } from '../faults/small-disk.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';
import { errorWithoutPrivileges } from '../support/privileges.ts';
import { batches } from '../support/store.ts';

const idsOf = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);

let embedded: EmbeddedStore | undefined;
let disk: SmallDisk | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await embedded?.remove();
  disk?.remove();
});

const probe = mountSmallDisk(1); // needs root, and a container may not mount anything
probe?.remove();
describe.skipIf(probe === undefined)('on a full disk', () => {
  /** The store has 16 parts of two records, and no file besides them. */
  async function openOnDisk(): Promise<{ embedded: EmbeddedStore; disk: SmallDisk }> {
    const mounted = mountSmallDisk(100);
    if (mounted === undefined) throw new Error('no small disk can be mounted');
    disk = mounted;
    vi.useFakeTimers({ toFake: ['performance'] });
    embedded = await EmbeddedStore.open({}, join(mounted.path, 'data'));
    for (let i = 0; i < 16; i++) await embedded.flush(embedded.createRecords(2));
    return { embedded, disk };
  }
  const expectOnlyParts = (store: EmbeddedStore) =>
    expect(store.files).toEqual(store.parts.map(({ file }) => file).sort());

  test('an append stores nothing, leaves no file, and works when there is space', async () => {
    const { embedded: store, disk: mounted } = await openOnDisk();
    const records = store.createRecords(1000).map(each => ({ ...each, eventMessage: 'x'.repeat(1000) }));
    mounted.fill(20_000);
    await expect(store.store.append(batches('edge', records))).rejects.toThrow();
    expect(await store.ids()).toEqual(idsOf(32));
    expectOnlyParts(store);
    mounted.free();
    await store.store.append(batches('edge', records));
    expect(await store.ids()).toEqual(idsOf(1032));
  });

  test('the removal of whole parts works if the manifest can be written', async () => {
    const { embedded: store, disk: mounted } = await openOnDisk();
    mounted.fill(100_000);
    const bytes = store.store.readStatistics().embedded?.fileBytes ?? 0;
    expect(await store.store.maintain({ evictTo: bytes - 1 })).toBe(2);
    expect(await store.ids()).toHaveLength(30);
    await expect.poll(() => store.files).toHaveLength(15);
  });
});

test('a data directory that may not be written to is rejected with one line, and is unchanged', async () => {
  embedded = await EmbeddedStore.open();
  await embedded.flush(embedded.createRecords(2));
  await embedded.close();
  const before = embedded.readFiles();
  const { dataDirectory } = embedded;
  for (const path of ['parts', '']) chmodSync(embedded.pathOf(path), 0o500);
  const store = embedded;
  const error = await errorWithoutPrivileges(dataDirectory, () => store.reopen());
  for (const path of ['', 'parts']) chmodSync(embedded.pathOf(path), 0o700);
  expect(error).toBeInstanceOf(OperatorError);
  expect((error as Error).message).toContain(dataDirectory);
  expect((error as Error).message).not.toContain('\n');
  expect(embedded.readFiles()).toEqual(before);
});
