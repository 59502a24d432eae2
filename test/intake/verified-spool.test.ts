import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Applier } from '../../src/intake/applier.ts';
import { createStoreCallbacks, Quarantine } from '../../src/intake/quarantine.ts';
import { Spool } from '../../src/intake/spool.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import { systemClock } from '../../src/system/clock.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { testStoreOptions } from '../support/app.ts';
import { replaceInBlocks } from '../support/duckdb-blocks.ts';
import { idsOf } from '../support/logs.ts';
import { record } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';

test('a segment is deleted only after its records were read back from the file, and damaged ones are rewritten from it', async () => {
  const directory = createDataDirectory();
  const events: Event[] = [];
  const observe = (event: Event) => events.push(event);
  const index = { restore: () => {}, requestsOf: () => [] };
  const callbacks = createStoreCallbacks(new Quarantine(directory, observe), systemClock, observe);
  const store = await openStore(testStoreOptions(directory), callbacks);
  const spool = await Spool.open(
    join(directory, 'spool'),
    kind => store.durableUpTo(kind),
    observe,
    { index, nowMs: () => 0 },
    systemClock,
  );
  const applier = new Applier({ spool, store, timer: systemTimer, observe });
  const hasSegment = () => existsSync(join(directory, 'spool', '000000000001.spool'));
  const ids = Array.from({ length: 8 }, (_, i) => `id-${i}000`);
  try {
    const { count, lines } = toLogLines(
      'auth',
      ids.map(id => record({ id, at: '2026-11-14T12:00:00Z', project: 'p' })),
    );
    await spool.append('auth', count, lines);
    await applier.start();
    const backup = await store.snapshot(() => {});
    await expect(applier.drain(0)).rejects.toThrow('could not read them back');
    expect([store.flushedUpTo('auth'), hasSegment()]).toEqual([8, true]);
    backup.release();
    await store.usedBytes?.(); // waits for the checkpoint that follows a backup
    expect(replaceInBlocks(join(directory, 'dendro.duckdb'), 'id-5000', 'damaged', true)).toBeGreaterThan(0);
    await applier.drain(0);
    expect(hasSegment()).toBe(false);
    expect(events.filter(({ type }) => type === 'verification_failed')).toMatchObject([
      { kind: 'auth', outcome: 'rewritten' },
    ]);
  } finally {
    await applier.close();
    await spool.close();
    await store.close();
  }
  const reopened = await openStore(testStoreOptions(directory));
  expect(await idsOf({ store: reopened }, 'p', 'auth')).toEqual(ids);
  await reopened.close();
  removeDataDirectory(directory);
});
