// A request with records of several kinds: one acknowledgement for all of them, and no record twice.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { micros, NOW, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { idsOf } from '../support/logs.ts';
import { encodeOtlp, otlpRequest, sendOtlp, text } from '../support/otlp.ts';
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
const requestOf = (timeUnixNano: string | undefined) =>
  encodeOtlp({
    resourceLogs: ['edge', 'auth', 'postgres'].flatMap(
      kind =>
        otlpRequest({ 'service.name': kind, 'service.namespace': 'p' }, [
          { body: text(kind), ...(timeUnixNano && { timeUnixNano }) },
        ]).resourceLogs,
    ),
  });
const send = async (body: Buffer) => {
  const { status, message } = await sendOtlp(app.internalUrl, body);
  return [status, message];
};
const counts = () =>
  Promise.all(['edge', 'postgres', 'auth'].map(async kind => (await idsOf(app, 'p', kind)).length));

test.each([
  ['with timestamps', String(micros(NOW) * 1000n)],
  ['without timestamps', undefined],
])(
  'a crash leaves one of three blocks of a request %s, and the retry stores exactly the other two',
  async (_, time) => {
    const body = requestOf(time);
    const crashed = createDataDirectory();
    await start();
    expect(await send(body)).toEqual([200, {}]);
    const spool = join(directory, 'spool');
    const [segment = ''] = readdirSync(spool).filter(name => name.endsWith('.spool'));
    mkdirSync(join(crashed, 'spool'));
    const copy = join(crashed, 'spool', segment);
    copyFileSync(join(spool, segment), copy);
    await app.close();
    removeDataDirectory(directory);
    directory = crashed;
    const secondBlock = readFileSync(copy).indexOf('{"form":', 20);
    truncateSync(copy, secondBlock + 100);

    await start();
    await expect.poll(counts).toEqual([1, 0, 0]);
    expect(await send(body)).toEqual([200, {}]);
    await expect.poll(counts).toEqual([1, 1, 1]);
  },
);

test('a request of three kinds is stored once across a restart', async () => {
  await start();
  const body = requestOf(String(micros(NOW) * 1000n));
  expect(await send(body)).toEqual([200, {}]);
  await app.close();
  await start();
  expect(await send(body)).toEqual([200, {}]);
  await expect.poll(counts).toEqual([1, 1, 1]);
});
