import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { readStoreCopy } from '../../src/store/open-store.ts';
import type { StoreSnapshot } from '../../src/store/store.ts';
import { edgeRecord } from '../support/record.ts';
import { createDataDirectory, openTestStore, removeDataDirectory, type TestStore } from '../support/store.ts';

describe('a snapshot of the embedded store', () => {
  const records = (count: number, project: string) =>
    Array.from({ length: count }, (_, i) =>
      edgeRecord({ at: '2026-11-14T12:00:00Z', project, message: `${project} ${i} ${'x'.repeat(i % 500)}` }),
    );
  let nextSequence = 0;
  const store = async ({ store: opened }: TestStore, count: number, project: string) => {
    await opened.apply({ ...toLogLines('edge', records(count, project)), firstSequence: nextSequence });
    nextSequence += count;
    await opened.flush(LOG_KINDS);
  };
  const writeCopy = async ({ files: [file] }: StoreSnapshot, directory: string) => {
    const stream = createWriteStream(join(directory, 'dendro.duckdb'));
    for await (const chunk of file?.content() ?? []) stream.write(chunk);
    await once(stream.end(), 'close');
  };

  test('is not changed by flushes, retention and compaction that run before it is read', async () => {
    nextSequence = 0;
    const opened = await openTestStore();
    const directory = createDataDirectory();
    try {
      for (const project of ['a', 'b', 'c']) await store(opened, 4000, project);
      let calls = 0;
      const snapshot = await opened.store.snapshot(() => calls++);
      expect(calls).toBe(1);
      for (const project of ['d', 'e', 'f']) await store(opened, 4000, project);
      expect(await opened.store.compact?.(BigInt(Date.now()) * 1000n)).toBe(false);
      expect(await opened.store.deleteBefore(BigInt(Date.parse('2026-11-15')) * 1000n)).toBe(24_000);
      await store(opened, 4000, 'g');
      await writeCopy(snapshot, directory);
      snapshot.release();
      const copy = await readStoreCopy('duckdb', directory, '500MB');
      expect(copy.records).toEqual(snapshot.records);
      expect(copy.records.get('edge')).toBe(12_000);
      const durable = (content: { durableUpTo(kind: LogKind): number }) => LOG_KINDS.map(content.durableUpTo);
      expect(durable(copy)).toEqual(durable(snapshot));
      expect(snapshot.durableUpTo('edge')).toBe(12_000);
      // After the release, checkpoints run again.
      await store(opened, 10, 'h');
      const second = await opened.store.snapshot(() => {});
      expect(second.records.get('edge')).toBe(4010);
      second.release();
    } finally {
      await opened.close();
      removeDataDirectory(directory);
    }
  });

  test('is refused while another one is read, and possible after its release', async () => {
    const opened = await openTestStore();
    try {
      const first = await opened.store.snapshot(() => {});
      await expect(opened.store.snapshot(() => {})).rejects.toMatchObject({ code: 'unavailable' });
      first.release();
      first.release();
      const second = await opened.store.snapshot(() => {});
      await expect(opened.store.snapshot(() => {})).rejects.toMatchObject({ code: 'unavailable' });
      second.release();
    } finally {
      await opened.close();
    }
  });

  test('is released if onSnapshot throws, and cannot be read after the store is closed', async () => {
    const opened = await openTestStore();
    const failing = () => {
      throw new Error('no descriptor');
    };
    await expect(opened.store.snapshot(failing)).rejects.toThrow('no descriptor');
    const snapshot = await opened.store.snapshot(() => {});
    const [file] = snapshot.files;
    await opened.close();
    await expect(file?.content()[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'unavailable',
    });
  });
});
