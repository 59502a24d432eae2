import { existsSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { replaySpool } from '../../src/intake/applier.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';

let directory: string;
let app: TestApp;
beforeEach(() => {
  directory = createDataDirectory();
});
afterEach(async () => {
  await app.close();
  removeDataDirectory(directory);
});

const start = async () => {
  app = await startTestApp({ store: testStoreOptions(directory) });
};
const send = (...ids: string[]) =>
  sendLogs(
    app.internalUrl,
    ids.map(id => ({ project: 'p', id, message: 'm' })),
  );
const spoolDirectory = () => join(directory, 'spool');

test.each([
  ['missing', () => rmSync(spoolDirectory(), { recursive: true })],
  ['empty', () => truncateSync(join(spoolDirectory(), '000000000001.spool'))],
])(
  'a spool that is %s although the store has its records is reported, and new records are stored',
  async (_, damage) => {
    await start();
    await send('a', 'b', 'c');
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(3);
    await app.store.flush(LOG_KINDS);
    await app.close();
    damage();
    await start();
    expect(app.events).toContainEqual({
      type: 'spool_incomplete',
      directory: spoolDirectory(),
      kinds: ['edge'],
    });
    await send('d', 'e');
    await expect.poll(() => idsOf(app, 'p')).toEqual(['a', 'b', 'c', 'd', 'e']);
    await app.close();
    await start();
    expect(await idsOf(app, 'p')).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(app.events.filter(({ type }) => type === 'spool_incomplete')).toEqual([]);
  },
);

test('a command that reads the data directory reports a missing spool and does not create one', async () => {
  await start();
  await send('a');
  await expect.poll(() => idsOf(app, 'p')).toHaveLength(1);
  await app.store.flush(LOG_KINDS);
  await app.close();
  rmSync(spoolDirectory(), { recursive: true });
  const store = await openStore(testStoreOptions(directory));
  const events: Event[] = [];
  await replaySpool(directory, store, event => events.push(event));
  await store.close();
  expect(events).toEqual([{ type: 'spool_incomplete', directory: spoolDirectory(), kinds: ['edge'] }]);
  expect(existsSync(spoolDirectory())).toBe(false);
});
