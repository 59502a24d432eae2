import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import {
  countStored as countStoredOf,
  idsOf,
  readMetric,
  type SendOptions,
  sendLogs,
} from '../support/logs.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const MIB = 1024 * 1024;

const directory = useDirectory();
let tokens: TestTokens<'other'>;
let app: TestApp;

const start = async (options: { clockStepMs?: number } = {}) => {
  const config = { store: testStoreOptions(directory), tokensFile: tokens.file };
  app = await startTestApp(config, undefined, options.clockStepMs);
};
const restart = async () => {
  await app.close();
  await start();
};
beforeEach(async () => {
  tokens = await createTokens({ other: { scopes: ['ingest'] } });
  await start();
});
afterEach(async () => {
  await app.close();
  tokens.remove();
});

const send = (body: unknown, options?: SendOptions) => sendLogs(app.internalUrl, body, options);
const withKey = (key: string): SendOptions => ({ headers: { 'Idempotency-Key': key } });
const withId = { project: 'p', message: 'm', id: 'a' };
const withoutId = { project: 'p', message: 'm' };
const countStored = (kind?: string) => countStoredOf(app, kind);
const metric = (name: string) => readMetric(app, name);

describe('a body that is sent twice', () => {
  test.each([
    ['an id', withId],
    ['an id that is a number', { ...withoutId, id: 7 }],
    ['a timestamp with a fraction', { ...withoutId, timestamp: '2026-11-14T12:34:56.1Z' }],
    ['a timestamp in milliseconds', { ...withoutId, timestamp: 1_794_659_696_123 }],
    ['a timestamp in nanoseconds', '{"project":"p","message":"m","timestamp":1794659696123456789}'],
    ['an id or a fine timestamp', [withId, { ...withoutId, timestamp: '1794659696123456' }]],
  ])('the body is stored once and gets the first response again if every record has %s', async (_, body) => {
    const first = await send(body);
    const second = await send(body);
    expect(first.status).toBe(200);
    expect([second.status, second.text]).toEqual([first.status, first.text]);
    expect(await countStored()).toBe(Array.isArray(body) ? body.length : 1);
  });

  test.each([
    ['without id and timestamp', withoutId],
    ['with a timestamp in whole seconds', { ...withoutId, timestamp: '2026-11-14T12:34:56Z' }],
    ['with a timestamp of 10 digits', { ...withoutId, timestamp: 1_794_659_696 }],
    ['with an empty id', { ...withoutId, id: '' }],
    ['without id and timestamp among others', [withId, withoutId]],
  ])('the body is stored twice if there is a record %s', async (_, body) => {
    await send(body);
    await send(body);
    expect(await countStored()).toBe(Array.isArray(body) ? 2 * body.length : 2);
  });

  test('a repeated body gets the errors of its rejected records again, and they are counted once', async () => {
    const body = [withId, { message: 'of no project' }];
    const first = await send(body);
    expect(first).toMatchObject({ accepted: 1, rejected: 1, errors: [{ index: 1, code: 'no_project' }] });
    expect((await send(body)).text).toBe(first.text);
    expect(await metric('dendro_records_rejected_total{kind="edge",code="no_project"}')).toBe(1);
    expect(await metric('dendro_batches_deduplicated_total{kind="edge"}')).toBe(1);
    expect(await metric('dendro_records_accepted_total{kind="edge"}')).toBe(1);
    // Without accepted records, a body is rejected and counted each time.
    for (let time = 0; time < 3; time++)
      expect((await send([{ message: 'of no project' }])).status).toBe(422);
    expect(await metric('dendro_records_rejected_total{kind="edge",code="no_project"}')).toBe(4);
  });

  test('a body is deduplicated for exactly ten minutes', async () => {
    app.setNow('2026-11-14T12:00:00.000001Z');
    await send(withId);
    app.setNow('2026-11-14T12:10:00.000000Z');
    await send(withId);
    expect(await countStored()).toBe(1);
    app.setNow('2026-11-14T12:10:00.000001Z');
    await send(withId);
    expect(await countStored()).toBe(2);
    app.setNow('2026-11-14T12:20:00.000000Z');
    await send(withId);
    expect(await countStored()).toBe(2);
  });

  test.each([
    ['forward by a day', 86_400_000],
    ['back by a day', -86_400_000],
  ])('a body is deduplicated for ten minutes although the clock is set %s', async (_, step) => {
    await send(withId);
    app.stepClock(step);
    await send(withId);
    expect(await countStored()).toBe(1);
    await app.pass(599_999);
    await send(withId);
    expect(await countStored()).toBe(1);
    await app.pass(1);
    await send(withId);
    expect(await countStored()).toBe(2);
  });

  test('the same body from another token or for another kind is another request', async () => {
    await send(withId);
    await send(withId, { token: tokens.secrets.other });
    expect(await countStored()).toBe(2);
    await send(withId, { query: '?source_name=auth' });
    await send(withId, { query: '?source_name=gotrue.logs.prod' });
    expect(await countStored('auth')).toBe(1);
  });

  test('concurrent requests with the same body are stored once and get the same response', async () => {
    const body = Array.from({ length: 2_000 }, (_, i) => ({ ...withId, id: `concurrent-${i}` }));
    const responses = await Promise.all(Array.from({ length: 12 }, () => send(body)));
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(responses[0]).toMatchObject({ status: 200, accepted: 2_000 });
    expect(await countStored()).toBe(2_000);
  });
});

describe('Idempotency-Key', () => {
  test('two requests with the same key are stored once, also without ids and timestamps', async () => {
    const first = await send([withoutId, 7], withKey('k'));
    const second = await send([withoutId, 7], withKey('k'));
    expect([second.status, second.text]).toEqual([first.status, first.text]);
    expect(await countStored()).toBe(1);
  });

  test('the same key with a different body gets 422, and the body is not stored', async () => {
    await send(withoutId, withKey('k'));
    const { status, error } = await send({ ...withoutId, message: 'other' }, withKey('k'));
    expect([status, error.code]).toEqual([422, 'idempotency_conflict']);
    expect(await countStored()).toBe(1);
  });

  test('a request without accepted records gets the same response again for the same key', async () => {
    const first = await send([7], withKey('k'));
    const second = await send([7], withKey('k'));
    expect([second.status, second.text]).toEqual([422, first.text]);
    expect((await send([8], withKey('k'))).error.code).toBe('idempotency_conflict');
  });

  test('a key of 255 characters is accepted, a longer one gets 400, and an empty one is ignored', async () => {
    expect((await send(withoutId, withKey('k'.repeat(255)))).status).toBe(200);
    const { status, error } = await send(withoutId, withKey('k'.repeat(256)));
    expect([status, error.code, error.param]).toEqual([400, 'invalid_parameter', 'Idempotency-Key']);
    await send(withoutId, withKey(''));
    await send(withoutId, withKey(''));
    expect(await countStored()).toBe(3);
  });
});

/** Fills the first segment of the spool, so that the next request starts another one. */
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
const spoolFiles = () => readdirSync(join(directory, 'spool')).sort();

describe('deduplication after a restart', () => {
  test('the same body and the same key get the first response again after a restart', async () => {
    const first = await send([withId, 7]);
    const responseToKey = await send(withoutId, withKey('k'));
    await restart();
    expect((await send([withId, 7])).text).toBe(first.text);
    expect((await send(withoutId, withKey('k'))).text).toBe(responseToKey.text);
    expect((await send(withId, withKey('k'))).error.code).toBe('idempotency_conflict');
    await restart();
    expect((await send([withId, 7])).text).toBe(first.text);
    expect(await countStored()).toBe(2);
  });

  test('a body is deduplicated for ten minutes after a restart with a clock that was set back by a day', async () => {
    await send(withId);
    await app.close();
    await start({ clockStepMs: -86_400_000 });
    await send(withId);
    expect(await countStored()).toBe(1);
    await app.pass(600_000);
    await send(withId);
    expect(await countStored()).toBe(2);
  });

  test('a body gets the first response again although its segment was deleted', async () => {
    const first = await send(withId);
    await fillSegment();
    await send({ ...withId, id: 'in the next segment' });
    await countStored();
    await app.store.flush(LOG_KINDS);
    await send({ ...withId, id: 'wakes the applier' });
    await expect
      .poll(spoolFiles)
      .toEqual(['000000000001.requests', '000000000002.spool', 'next-numbers.json']);
    await restart();
    expect((await send(withId)).text).toBe(first.text);
    expect(await countStored()).toBe(3);
    expect((await idsOf(app, 'filler')).length).toBe(36);
  });
});

test('malformed lines of the idempotency log are skipped with one event, and the others are read', async () => {
  const first = await send(withId, withKey('k'));
  await app.close();
  const spool = join(directory, 'spool');
  const [header = ''] = readFileSync(join(spool, '000000000001.spool'), 'latin1').split('\n', 1);
  const request = JSON.stringify(JSON.parse(header.slice(header.indexOf('{'))).request);
  const lines = [
    'null',
    '7',
    '{}',
    '[]',
    '"text"',
    '{"key":null}',
    '{"key":"k","digest":"d","atMicros":1,"answer":{"accepted":1,"rejected":1,"errors":[null]}}',
    'x'.repeat(3 * MIB),
    request,
    request.slice(0, 9),
  ];
  rmSync(spool, { recursive: true });
  mkdirSync(spool);
  writeFileSync(join(spool, '000000000001.requests'), lines.join('\n'));
  await start();
  expect(app.events.filter(({ type }) => type === 'idempotency_log_damaged')).toMatchObject([
    { malformedLines: 9 },
  ]);
  expect((await send(withId, withKey('k'))).text).toBe(first.text);
  expect(await metric('dendro_batches_deduplicated_total{kind="edge"}')).toBe(1);
});

test('a request that failed is not deduplicated: the retry is stored', async () => {
  await fillSegment();
  const next = join(directory, 'spool', '000000000002.spool');
  mkdirSync(next); // so that the segment cannot be created
  const responses = await Promise.all([send(withId), send(withId), send(withoutId, withKey('k'))]);
  for (const { status, error, headers } of responses) {
    expect([status, error.code]).toEqual([503, 'unavailable']);
    expect(headers.get('retry-after')).toBe('5');
    expect(error.message).toMatch(/no record of this request was stored/);
  }
  expect(await countStored()).toBe(0);
  rmSync(next, { recursive: true });
  expect((await send(withId)).status).toBe(200);
  expect((await send(withoutId, withKey('k'))).status).toBe(200);
  expect((await send(withId)).status).toBe(200);
  expect(await countStored()).toBe(2);
  await restart();
  expect(await countStored()).toBe(2);
});
