// Batches without ids and fine timestamps: the same bytes are a repeat only if the first response was not delivered.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { API_KEY, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { replaceFileMethods } from '../support/file-methods.ts';
import { useDirectory } from '../support/hooks.ts';
import {
  countStored as countStoredOf,
  idsOf,
  readMetric,
  type SendOptions,
  sendLogs,
} from '../support/logs.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';

const directory = useDirectory();
let app: TestApp;
let syncs: HeldSyncs;

const start = async () => {
  app = await startTestApp({ store: testStoreOptions(directory) });
};
beforeEach(async () => {
  syncs = await HeldSyncs.create();
  await start();
});
afterEach(async () => {
  syncs.restore();
  await app.close();
});

const BATCH = [{ project: 'p', message: 'heartbeat' }];
const send = (body: unknown = BATCH, options?: SendOptions) => sendLogs(app.internalUrl, body, options);
const countStored = () => countStoredOf(app);
const post = (body: string) => rawRequest('POST /api/logs?source_name=edge', postHeaders(body), body);
const postHeaders = (body: string) => ({
  'X-API-KEY': API_KEY,
  'Content-Type': 'application/json',
  'Content-Length': String(body.length),
});

/** Sends requests on one connection, and closes it while the first batch is being written to the spool. */
const sendAndDisconnect = async (requests: string) => {
  syncs.hold();
  const connection = await openConnection(app.internalUrl);
  connection.write(requests);
  await expect.poll(() => syncs.waiting).toBeGreaterThan(0);
  connection.close();
  await connection.ended;
  await readMetric(app, 'dendro_intake_queue_bytes'); // the server has read the end of the connection before it responds on another one
  syncs.release();
};

describe('a batch without ids and timestamps', () => {
  test('a batch without ids is stored once if the connection closed before the response, until a response was delivered', async () => {
    await sendAndDisconnect(post(JSON.stringify(BATCH)));
    expect(await countStored()).toBe(1);
    for (const stored of [1, 2, 3]) {
      expect(await send()).toMatchObject({ status: 200, accepted: 1 });
      expect(await countStored()).toBe(stored);
    }
  });

  test('a batch without ids is stored once if its response waited behind another one when the connection closed', async () => {
    const other = JSON.stringify([{ project: 'other', message: 'x' }]);
    await sendAndDisconnect(post(other) + post(JSON.stringify(BATCH)));
    await expect.poll(() => idsOf(app, 'other')).toHaveLength(1);
    await expect.poll(countStored).toBe(1);
    await send();
    expect(await countStored()).toBe(1);
  });

  test('a batch without ids is stored once if the same bytes arrive on a new connection while the first request is being stored', async () => {
    syncs.hold();
    const connection = await openConnection(app.internalUrl);
    connection.write(post(JSON.stringify(BATCH)));
    await expect.poll(() => syncs.waiting).toBeGreaterThan(0);
    const retry = send();
    connection.close();
    await connection.ended;
    await readMetric(app, 'dendro_intake_queue_bytes');
    syncs.release();
    expect(await retry).toMatchObject({ status: 200, accepted: 1 });
    expect(await countStored()).toBe(1);
  });

  test('a batch without ids is stored each time if all responses are delivered, to concurrent and to pipelined requests', async () => {
    const responses = await Promise.all(Array.from({ length: 8 }, () => send()));
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill(200));
    const connection = await openConnection(app.internalUrl);
    connection.write(post(JSON.stringify(BATCH)).repeat(20));
    for (let i = 0; i < 20; i++) expect((await connection.next()).status).toBe(200);
    connection.close();
    expect(await countStored()).toBe(28);
  });

  test('a batch without ids is a new request with an Idempotency-Key, although the first response was not delivered', async () => {
    await sendAndDisconnect(post(JSON.stringify(BATCH)));
    await send(BATCH, { headers: { 'Idempotency-Key': 'k' } });
    expect(await countStored()).toBe(2);
  });
});

describe('after a restart', () => {
  const restart = async (isClean = true) => {
    await app.close();
    if (!isClean) rmSync(join(directory, 'spool', 'undelivered.json'));
    await start();
  };

  test('a batch whose response was delivered before a clean stop is a new batch', async () => {
    await send();
    await restart();
    await send();
    expect(await countStored()).toBe(2);
  });

  test('a batch whose response was not delivered before a clean stop is a repeat', async () => {
    await sendAndDisconnect(post(JSON.stringify(BATCH)));
    await countStored();
    await restart();
    await send();
    expect(await countStored()).toBe(1);
    await restart();
    await send();
    expect(await countStored()).toBe(2);
  });

  test('a batch is a repeat once after an unclean stop, because it is unknown whether its response was delivered', async () => {
    await send();
    await restart(false);
    await send();
    expect(await countStored()).toBe(1);
    await send();
    expect(await countStored()).toBe(2);
  });
});

/** Makes writes to the spool wait, by replacing the function that syncs a file. */
class HeldSyncs {
  /** Writes to the spool that wait. */
  waiting = 0;
  restore = () => {};
  release = () => {};
  #held = Promise.resolve();

  static async create(): Promise<HeldSyncs> {
    const syncs = new HeldSyncs();
    const restore = await replaceFileMethods(({ datasync }) => ({
      async datasync() {
        syncs.waiting++;
        await syncs.#held;
        syncs.waiting--;
        return datasync.call(this);
      },
    }));
    syncs.restore = () => {
      syncs.release();
      restore();
    };
    return syncs;
  }

  hold(): void {
    this.#held = new Promise(resolve => {
      this.release = resolve;
    });
  }
}
