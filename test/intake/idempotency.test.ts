import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { API_KEY, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { idsOf, type SendOptions, sendLogs } from '../support/logs.ts';
import { type MadeTokens, makeTokens } from '../support/made-tokens.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';

const MIB = 1024 * 1024;

let folder: string;
let tokens: MadeTokens<'other'>;
let app: TestApp;

const start = async () => {
  app = await startTestApp({ store: testStoreOptions(folder), tokensFile: tokens.file });
};
const restart = async () => {
  await app.close();
  await start();
};
beforeEach(async () => {
  folder = makeDataFolder();
  tokens = await makeTokens({ other: { scopes: ['ingest'] } });
  await start();
});
afterEach(async () => {
  await app.close();
  tokens.remove();
  removeDataFolder(folder);
});

const send = (body: unknown, options?: SendOptions) => sendLogs(app.internalUrl, body, options);
const withKey = (key: string): SendOptions => ({ headers: { 'Idempotency-Key': key } });
const hasIdentity = { project: 'p', message: 'm', id: 'a' };
const plain = { project: 'p', message: 'm' };
/** How many are there once everything that was acknowledged can be seen. */
const stored = async (kind = 'edge') => {
  await expect.poll(() => queuedBytes()).toBe(0);
  return (await idsOf(app, 'p', kind)).length;
};
const queuedBytes = async () => {
  const response = await fetch(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
  return Number(/^dendro_intake_queue_bytes (.*)$/m.exec(await response.text())?.[1]);
};

describe('the same bytes sent again', () => {
  test.each([
    ['an id', hasIdentity],
    ['an id that is a number', { ...plain, id: 7 }],
    ['a timestamp with a fraction', { ...plain, timestamp: '2026-11-14T12:34:56.1Z' }],
    ['a timestamp in milliseconds', { ...plain, timestamp: 1_794_659_696_123 }],
    ['a timestamp in nanoseconds', '{"project":"p","message":"m","timestamp":1794659696123456789}'],
    ['an id or a fine timestamp each', [hasIdentity, { ...plain, timestamp: '1794659696123456' }]],
  ])(
    'are stored once where every record carries %s, and the first answer is given again',
    async (_, body) => {
      const first = await send(body);
      const second = await send(body);
      expect(first.status).toBe(200);
      expect([second.status, second.text]).toEqual([first.status, first.text]);
      expect(await stored()).toBe(Array.isArray(body) ? body.length : 1);
    },
  );

  test.each([
    ['carries neither', plain],
    ['carries a timestamp in whole seconds', { ...plain, timestamp: '2026-11-14T12:34:56Z' }],
    ['carries a timestamp of 10 digits', { ...plain, timestamp: 1_794_659_696 }],
    ['carries an empty id', { ...plain, id: '' }],
    ['is one of several that carries neither', [hasIdentity, plain]],
  ])('are stored again where a record %s', async (_, body) => {
    await send(body);
    await send(body);
    expect(await stored()).toBe(Array.isArray(body) ? 2 * body.length : 2);
  });

  test('with rejected records among them are answered with these again, and these are counted once', async () => {
    const body = [hasIdentity, { message: 'of no project' }];
    const first = await send(body);
    expect(first).toMatchObject({ accepted: 1, rejected: 1, errors: [{ index: 1, code: 'no_project' }] });
    expect((await send(body)).text).toBe(first.text);
    expect(await metric('dendro_records_rejected_total{kind="edge",code="no_project"}')).toBe(1);
    expect(await metric('dendro_batches_deduplicated_total{kind="edge"}')).toBe(1);
    expect(await metric('dendro_records_accepted_total{kind="edge"}')).toBe(1);
  });

  test('none of which was accepted are rejected, counted and kept each time', async () => {
    for (let time = 0; time < 3; time++)
      expect((await send([{ message: 'of no project' }])).status).toBe(422);
    expect(await metric('dendro_records_rejected_total{kind="edge",code="no_project"}')).toBe(3);
  });

  test('with another blank are other bytes', async () => {
    await send(JSON.stringify(hasIdentity));
    await send(`${JSON.stringify(hasIdentity)} `);
    expect(await stored()).toBe(2);
  });

  test('are the same for ten minutes, to the microsecond', async () => {
    app.setNow('2026-11-14T12:00:00.000001Z');
    await send(hasIdentity);
    app.setNow('2026-11-14T12:10:00.000000Z');
    await send(hasIdentity);
    expect(await stored()).toBe(1);
    app.setNow('2026-11-14T12:10:00.000001Z');
    await send(hasIdentity);
    expect(await stored()).toBe(2);
    app.setNow('2026-11-14T12:20:00.000000Z');
    await send(hasIdentity);
    expect(await stored()).toBe(2);
  });

  test('by another token or for another kind are another request', async () => {
    await send(hasIdentity);
    await send(hasIdentity, { token: tokens.secrets.other });
    expect(await stored()).toBe(2);
    await send(hasIdentity, { query: '?source_name=auth' });
    await send(hasIdentity, { query: '?source_name=gotrue.logs.prod' });
    expect(await stored('auth')).toBe(1);
  });

  test('while the first is still on its way wait for its answer', async () => {
    const body = Array.from({ length: 2_000 }, (_, i) => ({ ...hasIdentity, id: `twin-${i}` }));
    const answers = await Promise.all(Array.from({ length: 12 }, () => send(body)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 200, accepted: 2_000 });
    expect(await stored()).toBe(2_000);
  });
});

describe('an Idempotency-Key', () => {
  test('makes requests the same that carry neither ids nor times', async () => {
    const first = await send([plain, 7], withKey('k'));
    const second = await send([plain, 7], withKey('k'));
    expect([second.status, second.text]).toEqual([first.status, first.text]);
    expect(await stored()).toBe(1);
  });

  test('makes requests with the same ids different', async () => {
    await send(hasIdentity, withKey('k1'));
    await send(hasIdentity, withKey('k2'));
    await send(hasIdentity);
    expect(await stored()).toBe(3);
  });

  test('with other bytes is 422, and stores nothing', async () => {
    await send(plain, withKey('k'));
    const { status, error } = await send({ ...plain, message: 'other' }, withKey('k'));
    expect([status, error.code]).toEqual([422, 'idempotency_conflict']);
    expect(await stored()).toBe(1);
  });

  test('with other bytes is a new request after ten minutes', async () => {
    await send(plain, withKey('k'));
    app.setNow('2026-11-14T12:44:56.789012Z');
    expect((await send({ ...plain, message: 'other' }, withKey('k'))).status).toBe(200);
    expect(await stored()).toBe(2);
  });

  test('belongs to a token and a kind', async () => {
    await send(plain, withKey('k'));
    const other = { ...plain, message: 'other' };
    expect((await send(other, { ...withKey('k'), token: tokens.secrets.other })).status).toBe(200);
    expect((await send(other, { ...withKey('k'), query: '?source_name=auth' })).status).toBe(200);
    expect([await stored(), await stored('auth')]).toEqual([2, 1]);
  });

  test('of a request of which nothing was accepted gives that answer again', async () => {
    const first = await send([7], withKey('k'));
    const second = await send([7], withKey('k'));
    expect([second.status, second.text]).toEqual([422, first.text]);
    expect((await send([8], withKey('k'))).error.code).toBe('idempotency_conflict');
  });

  test('may have 255 characters; one that is empty is none', async () => {
    expect((await send(plain, withKey('k'.repeat(255)))).status).toBe(200);
    const { status, error } = await send(plain, withKey('k'.repeat(256)));
    expect([status, error.code, error.param]).toEqual([400, 'invalid_parameter', 'Idempotency-Key']);
    await send(plain, withKey(''));
    await send(plain, withKey(''));
    expect(await stored()).toBe(3);
  });

  test('whose twins come all at once is stored once', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => send(plain, withKey('k'))));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200));
    expect(await stored()).toBe(1);
  });
});

/** Fills the first segment of the spool, so that the next request begins another. */
const fillSegment = async () => {
  for (let part = 0; part < 3; part++) {
    const records = Array.from({ length: 12 }, (_, i) => ({
      project: 'filler',
      id: `${part}-${i}`,
      message: 'x'.repeat(MIB - 100),
    }));
    expect((await send(records)).status).toBe(200);
  }
};
const spoolFiles = () => readdirSync(join(folder, 'spool')).sort();

describe('across a restart', () => {
  test('the same bytes and the same key are known, with the answer they had', async () => {
    const first = await send([hasIdentity, 7]);
    const keyed = await send(plain, withKey('k'));
    await restart();
    expect((await send([hasIdentity, 7])).text).toBe(first.text);
    expect((await send(plain, withKey('k'))).text).toBe(keyed.text);
    expect((await send(hasIdentity, withKey('k'))).error.code).toBe('idempotency_conflict');
    await restart();
    expect((await send([hasIdentity, 7])).text).toBe(first.text);
    expect(await stored()).toBe(2);
  });

  test('they are forgotten after ten minutes', async () => {
    await send(hasIdentity);
    await restart();
    app.setNow('2026-11-14T12:44:56.789012Z');
    await send(hasIdentity);
    expect(await stored()).toBe(2);
  });

  test('they are known though their segment has been removed meanwhile', async () => {
    const first = await send(hasIdentity);
    await fillSegment();
    await send({ ...hasIdentity, id: 'in the next segment' });
    await stored();
    await app.store.flush(LOG_KINDS);
    await send({ ...hasIdentity, id: 'wakes the fold' });
    await expect
      .poll(spoolFiles)
      .toEqual(['000000000001.requests', '000000000002.spool', 'next-numbers.json']);
    await restart();
    expect((await send(hasIdentity)).text).toBe(first.text);
    expect(await stored()).toBe(3);
    expect((await idsOf(app, 'filler')).length).toBe(36);
  });
});

test('a first attempt that failed is not remembered: the next is stored', async () => {
  await fillSegment();
  const next = join(folder, 'spool', '000000000002.spool');
  mkdirSync(next); // a segment cannot begin under that name
  const twins = await Promise.all([send(hasIdentity), send(hasIdentity), send(plain, withKey('k'))]);
  for (const { status, error, headers } of twins) {
    expect([status, error.code]).toEqual([503, 'unavailable']);
    expect(headers.get('retry-after')).toBe('5');
    expect(error.message).toMatch(/nothing of this was stored/);
  }
  expect(await stored()).toBe(0);
  rmSync(next, { recursive: true });
  expect((await send(hasIdentity)).status).toBe(200);
  expect((await send(plain, withKey('k'))).status).toBe(200);
  expect((await send(hasIdentity)).status).toBe(200);
  expect(await stored()).toBe(2);
  await restart();
  expect(await stored()).toBe(2);
});

async function metric(name: string): Promise<number> {
  const response = await fetch(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
  const line = (await response.text()).split('\n').find(each => each.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}
