import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { unpack } from '../../src/backup/unpack.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { inspectStore, listParts } from '../../src/store/open-store.ts';
import { useDirectory } from '../support/hooks.ts';
import { listOpenFiles } from '../support/open-files.ts';
import { edgeRecord } from '../support/record.ts';
import { openTestStore, type TestStore } from '../support/store.ts';

const NONE: ReadonlySet<string> = new Set();

describe('a snapshot of the embedded store', () => {
  let opened: TestStore;
  const directory = useDirectory();
  let nextSequence: number;
  beforeEach(async () => {
    opened = await openTestStore();
    nextSequence = 0;
  });
  afterEach(() => opened.close());

  const storePart = async (project: string, count = 100) => {
    const records = Array.from({ length: count }, (_, i) =>
      edgeRecord({ at: '2026-11-14T12:00:00Z', project, message: `${project} ${i}` }),
    );
    await opened.store.apply({ ...toLogLines('edge', records), firstSequence: nextSequence });
    nextSequence += count;
    await opened.store.flush(LOG_KINDS);
  };
  const partsOnDisk = () => readdirSync(join(opened.dataDirectory, 'parts'));

  test('has no part whose checksum is omitted, and names all parts in its manifest', async () => {
    await storePart('a');
    const [first] = await listParts(opened.dataDirectory);
    await storePart('b');
    const [, second] = await listParts(opened.dataDirectory);
    const snapshot = opened.store.snapshot(new Set([first?.sha256 ?? '', '0'.repeat(64)]));
    expect(snapshot.files.map(({ path }) => path)).toEqual(['manifest.json', second?.path]);
    await unpack(snapshot.files, directory);
    await snapshot.close();
    expect(await listParts(directory)).toEqual([first, second]);
    const { damages } = await inspectStore('duckdb', { dataDirectory: directory });
    expect(damages).toMatchObject([{ file: first?.path, problem: 'the file does not exist' }]);
  });

  test.runIf(process.platform === 'linux')('keeps its files open only until it is closed', async () => {
    await storePart('a');
    const [part] = partsOnDisk();
    const countOpen = () =>
      listOpenFiles(opened.dataDirectory).filter(file => file.endsWith(part ?? '')).length;
    const before = countOpen();
    const [first, second] = [opened.store.snapshot(NONE), opened.store.snapshot(NONE)];
    expect(countOpen()).toBe(before + 2);
    await first.close();
    await second.close();
    await second.close();
    expect(countOpen()).toBe(before);
  });

  test('is refused after the store is closed', async () => {
    await opened.store.close();
    expect(() => opened.store.snapshot(NONE)).toThrow(expect.objectContaining({ code: 'unavailable' }));
  });
});
