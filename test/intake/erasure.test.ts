import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type EraseReport, Erasure } from '../../src/intake/erasure.ts';
import type { Store } from '../../src/store/store.ts';
import { fetchResponse, micros, NOW, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { idsOf, readMetric, sendLogs } from '../support/logs.ts';
import { edgeRecord } from '../support/record.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const PROJECT = 'qkzvxwyjfhbg';
/** In every text of the erased records. */
const TEXT = 'needle-7f3a9c51';

const directory = useDirectory();
let tokens: TestTokens<'admin' | 'pinned' | 'reader'>;
let app: TestApp;

const start = async () => {
  const options = { store: testStoreOptions(directory), tokensFile: tokens.file, cacheBytes: 1024 * 1024 };
  app = await startTestApp(options);
};
beforeEach(async () => {
  tokens = await createTokens({
    admin: { scopes: ['admin'] },
    pinned: { scopes: ['admin'], projects: [PROJECT] },
    reader: { scopes: ['query', 'ingest', 'metrics'] },
  });
  await start();
});
afterEach(async () => {
  await app.close();
  tokens.remove();
});

const call = (method: 'GET' | 'POST', body?: unknown, token = tokens.secrets.admin) =>
  fetchResponse(`${app.internalUrl}/api/admin/erase`, {
    method,
    headers: { 'X-API-KEY': token },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
const status = async () => JSON.parse((await call('GET')).text).result;
const erase = async (body: { project: string; before?: string }): Promise<Record<string, unknown>> => {
  const response = await call('POST', body);
  expect([response.status, response.text]).toEqual([202, expect.stringContaining('"running"')]);
  await expect.poll(async () => (await status()).state, { timeout: 20_000 }).not.toBe('running');
  return status();
};

/** The running server may delete files meanwhile. */
const readIfExists = (path: string) => {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return Buffer.alloc(0);
  }
};

/** The files of the data directory that contain a text, as raw bytes. */
const filesWith = (text: string) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && readIfExists(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name)
    .sort();

const logOf = (project: string, text: string, timestamp = NOW) => ({
  id: `${text}-id`,
  project,
  message: `${text} message`,
  timestamp,
  metadata: { text, request: { url: `https://${project}.example/${text}` } },
});
const waitForIds = (project: string, count: number, kind = 'edge') =>
  expect.poll(() => idsOf(app, project, kind)).toHaveLength(count);

/** An erasure of which only some steps are real. */
const openErasure = (eraseProject: Store['eraseProject'], quarantined = 0) =>
  Erasure.open({
    dataDirectory: directory,
    intake: { prepareErasure: async () => {} },
    store: { eraseProject },
    quarantine: { remove: async () => quarantined },
    eraseElsewhere: async () => {},
    observe: event => app.events.push(event),
  });

test('if the disk does not accept the scope, POST gets 503 and nothing is erased', async () => {
  mkdirSync(join(directory, 'erase.json.new')); // in place of the file that would be written
  const { status: code, error } = await call('POST', { project: PROJECT });
  expect([code, error.code, error.message]).toEqual([
    503,
    'unavailable',
    'writing to the disk failed; the request was not accepted, retry later',
  ]);
});

test('an erased project leaves no text in any file, and other projects keep theirs', async () => {
  await app.append('edge', [
    edgeRecord({ id: `${TEXT}-a`, project: PROJECT, at: NOW, message: TEXT, metadata: { TEXT } }),
    edgeRecord({ id: 'b', project: 'other', at: NOW }),
  ]);
  expect((await sendLogs(app.internalUrl, [logOf(PROJECT, TEXT), logOf('other', 'kept')])).status).toBe(200);
  // One record without a valid timestamp, and one line that is not JSON.
  const rejected = [
    JSON.stringify({ ...logOf(PROJECT, TEXT), timestamp: 'never' }),
    `{"project":"${PROJECT}" ${TEXT}`,
  ];
  const kept = JSON.stringify({ ...logOf('other', 'kept'), timestamp: 'never' });
  const ndjson = { headers: { 'Content-Type': 'application/x-ndjson' } };
  expect((await sendLogs(app.internalUrl, [...rejected, kept].join('\n'), ndjson)).rejected).toBe(3);
  await waitForIds(PROJECT, 2);
  await expect
    .poll(() => filesWith(TEXT))
    .toEqual(['000000000001.spool', 'edge-000001.duckdb', 'quarantine.ndjson']);

  expect(await erase({ project: PROJECT })).toEqual({
    ...{ state: 'done', project: PROJECT, before: null },
    ...{ records: 2, quarantined: 2, damaged_files: 0 },
  });
  expect(filesWith(TEXT)).toEqual([]);
  expect(filesWith(PROJECT)).toEqual([]);
  expect(await idsOf(app, PROJECT)).toEqual([]);
  expect(await idsOf(app, 'other')).toEqual(['b', 'kept-id']);
  expect(filesWith('kept')).toContain('quarantine.ndjson');
  await app.close();
  expect(filesWith(TEXT)).toEqual([]);
  await start();
  expect(await idsOf(app, 'other')).toEqual(['b', 'kept-id']);
});

test('text of expired records that are still in a part is erased too', async () => {
  const old = micros(NOW) - 40n * 86_400_000_000n;
  await app.append('edge', [
    edgeRecord({ id: `${TEXT}-a`, project: PROJECT, at: old, message: TEXT }),
    edgeRecord({ id: 'b', project: 'other', at: old + 1n }),
  ]);
  await app.store.maintain({ expire: { expiredBefore: old + 1n, rewriteBefore: 0n } });
  expect(await idsOf(app, PROJECT)).toEqual([]);
  expect(filesWith(TEXT)).toEqual(['edge-000001.duckdb']);
  expect(await erase({ project: PROJECT })).toMatchObject({ state: 'done', records: 1 });
  expect(filesWith(TEXT)).toEqual([]);
  expect(await idsOf(app, 'other')).toEqual(['b']);
});

test('with a time, only earlier records are erased, from the store and from the quarantine', async () => {
  const [early, late] = ['2026-11-14T10:00:00Z', '2026-11-14T11:00:00Z'];
  await sendLogs(app.internalUrl, [logOf(PROJECT, 'early', early), logOf(PROJECT, 'late', late)]);
  const rejected = [logOf(PROJECT, 'expired', '2026-01-01'), logOf(PROJECT, 'future', '2027-01-01')];
  expect((await sendLogs(app.internalUrl, rejected)).rejected).toBe(2);
  await waitForIds(PROJECT, 2);
  expect(await erase({ project: PROJECT, before: late })).toMatchObject({
    ...{ state: 'done', before: late },
    ...{ records: 1, quarantined: 1 },
  });
  expect(await idsOf(app, PROJECT)).toEqual(['late-id']);
  expect(readFileSync(join(directory, 'quarantine.ndjson'), 'utf8')).toMatch(/^[^\n]*future-id[^\n]*\n$/);
});

test('a cached result of the project is not served after the erasure', async () => {
  await app.append('edge', [edgeRecord({ project: PROJECT, at: NOW })]);
  const url = `/api/endpoints/query/usage.api-counts?project=${PROJECT}&interval=minutely`;
  const get = () => app.get(url, { headers: { 'X-API-KEY': tokens.secrets.reader } });
  expect((await get()).rows).toHaveLength(1);
  expect((await get()).headers.get('cache-status')).toMatch(/hit/);
  await erase({ project: PROJECT });
  expect((await get()).rows).toHaveLength(0);
  expect((await get()).headers.get('dendro-data-through')).toBeNull();
});

test('the next start continues an erasure that a crash interrupted', async () => {
  await sendLogs(app.internalUrl, [logOf(PROJECT, TEXT), logOf('other', 'kept')]);
  await app.close();
  writeFileSync(join(directory, 'erase.json'), JSON.stringify([{ project: PROJECT }]));
  await start();
  await expect.poll(async () => (await status())?.state).toBe('done');
  expect(filesWith(TEXT)).toEqual([]);
  expect(existsSync(join(directory, 'erase.json'))).toBe(false);
  expect(await idsOf(app, 'other')).toEqual(['kept-id']);
});

test('an erasure in which a step fails stays unfinished until it is repeated', async () => {
  await app.append('edge', [edgeRecord({ project: PROJECT, at: NOW })]);
  let failures = 1;
  const erasure = await openErasure(scope =>
    failures-- > 0 ? Promise.reject(new Error('disk full')) : app.store.eraseProject(scope),
  );
  await erasure.start({ project: PROJECT });
  await expect.poll(() => erasure.status?.state).toBe('failed');
  expect(JSON.parse(readFileSync(join(directory, 'erase.json'), 'utf8'))).toEqual([{ project: PROJECT }]);
  expect(app.events).toContainEqual({ type: 'erase_failed', error: expect.any(Error) });
  await erasure.start({ project: PROJECT });
  await expect.poll(() => erasure.status?.state).toBe('done');
  const report: EraseReport = { records: 1, quarantined: 0, damagedFiles: 0 };
  expect(erasure.status).toMatchObject({ report });
  expect(existsSync(join(directory, 'erase.json'))).toBe(false);
});

test('an erasure that is requested again while it runs also erases the records acknowledged before the second request', async () => {
  const scope = { project: PROJECT };
  await app.append('edge', [edgeRecord({ id: 'first', project: PROJECT, at: NOW })]);
  let runs = 0;
  const erasure = await openErasure(async each => {
    const erased = await app.store.eraseProject(each);
    if (++runs === 1) {
      await app.append('edge', [edgeRecord({ id: 'second', project: PROJECT, at: NOW })]);
      await erasure.start(scope);
    }
    return erased;
  }, 1);
  await erasure.start(scope);
  await expect.poll(() => erasure.status?.state).toBe('done');
  expect(erasure.status).toMatchObject({ report: { records: 2, quarantined: 2 } });
  expect(await idsOf(app, PROJECT)).toEqual([]);
  expect(existsSync(join(directory, 'erase.json'))).toBe(false);
});

test('when a repeated request is accepted, its scope is on disk, although the erasure was just removing it', async () => {
  const scope = { project: PROJECT };
  const file = join(directory, 'erase.json');
  const erasure = await openErasure(async () => 0);
  for (let round = 0; round < 20; round++) {
    await erasure.start(scope);
    while (existsSync(file)) await setImmediate();
    await erasure.start(scope);
    expect(existsSync(file)).toBe(true);
    await expect.poll(() => erasure.status?.state).toBe('done');
    expect(existsSync(file)).toBe(false);
  }
});

test('an erasure that is requested again runs, although the first run fails meanwhile', async () => {
  const scope = { project: PROJECT };
  let runs = 0;
  let secondRequest = Promise.resolve();
  const erasure = await openErasure(async () => {
    if (++runs > 1) return 0;
    secondRequest = erasure.start(scope);
    throw new Error('disk full');
  });
  await erasure.start(scope);
  await expect.poll(() => runs).toBe(1);
  await secondRequest;
  await expect.poll(() => [runs, erasure.status?.state]).toEqual([2, 'done']);
});

test('if one of several unfinished erasures fails, the others are still finished', async () => {
  const scopes = [{ project: 'fails' }, { project: PROJECT }];
  await app.append('edge', [edgeRecord({ project: PROJECT, at: NOW })]);
  writeFileSync(join(directory, 'erase.json'), JSON.stringify(scopes));
  const erasure = await openErasure(scope =>
    scope.project === 'fails' ? Promise.reject(new Error('disk full')) : app.store.eraseProject(scope),
  );
  await expect(erasure.resume()).rejects.toThrow('disk full');
  expect(await idsOf(app, PROJECT)).toEqual([]);
  expect(JSON.parse(readFileSync(join(directory, 'erase.json'), 'utf8'))).toEqual([{ project: 'fails' }]);
});

test('a rejected line that is not JSON is erased if it contains the project with JSON escapes', async () => {
  const lines = [
    '{"project":"zürich/1" broken',
    String.raw`{"project":"z\u00fcrich/1" broken`,
    String.raw`{"project":"z\u00FCrich\/1" broken`,
    String.raw`{"project":"z\u00fcri" broken`,
  ];
  const headers = { 'Content-Type': 'application/x-ndjson' };
  expect((await sendLogs(app.internalUrl, lines.join('\n'), { headers })).rejected).toBe(4);
  const file = join(directory, 'quarantine.ndjson');
  await expect.poll(() => existsSync(file) && readFileSync(file, 'utf8').split('\n').length).toBe(5);
  const cutOff = String.raw`{"quarantine":{"source":"edge"},"record":{"project":"z\u00fcrich/1"`;
  writeFileSync(file, `${readFileSync(file, 'utf8')}${cutOff}\n`);
  expect(await erase({ project: 'zürich/1' })).toMatchObject({ state: 'done', quarantined: 4 });
  expect(readFileSync(file, 'utf8')).toMatch(/^[^\n]*u00fcri\\" broken[^\n]*\n$/);
});

test('the report counts damaged files and parts that were set aside, which may contain erased records', async () => {
  mkdirSync(join(directory, 'spool/damaged'), { recursive: true });
  for (const file of [
    'spool/damaged/1.bytes',
    'parts/edge-000008.duckdb.damaged',
    'parts/edge-000009.duckdb.unnamed',
  ])
    writeFileSync(join(directory, file), TEXT);
  expect(await erase({ project: PROJECT })).toMatchObject({ state: 'done', damaged_files: 3 });
});

test('an erasure fails while the store does not accept records of the spool, and works when it is repeated', async () => {
  const stagingFile = join(directory, 'staging', 'apply.lines');
  mkdirSync(stagingFile); // the store cannot apply records while a directory has this name
  await sendLogs(app.internalUrl, [logOf(PROJECT, TEXT)]);
  expect(await erase({ project: PROJECT })).toEqual({ state: 'failed', project: PROJECT, before: null });
  expect(filesWith(TEXT)).toEqual(['000000000001.spool']);
  rmSync(stagingFile, { recursive: true });
  expect(await erase({ project: PROJECT })).toMatchObject({ state: 'done', records: 1 });
  expect(filesWith(TEXT)).toEqual([]);
});

describe('a request that is sent again after an erasure', () => {
  const BATCH = [
    logOf(PROJECT, 'one'),
    logOf('other', 'kept'),
    logOf(PROJECT, 'two', '2026-11-14T10:00:00Z'),
  ];
  /** Sends the batch, waits until all of it is applied, and returns the ids of both projects. */
  const sendAgain = async (headers = {}) => {
    const { status: code, accepted } = await sendLogs(app.internalUrl, BATCH, { headers });
    expect([code, accepted]).toEqual([200, 3]);
    await expect.poll(() => readMetric(app, 'dendro_intake_queue_bytes')).toBe(0);
    return [await idsOf(app, PROJECT), await idsOf(app, 'other')];
  };
  /** Continues with a copy of the data directory, as a restart after kill -9 would. */
  const restartAfterKill = async () => {
    const copy = `${directory}-copy`;
    cpSync(directory, copy, { recursive: true, filter: source => !source.endsWith('dendro.pid') });
    await app.close();
    rmSync(directory, { recursive: true });
    renameSync(copy, directory);
    await start();
  };

  test.each([
    ['that is recognized by its body', {}],
    ['with an Idempotency-Key', { 'Idempotency-Key': 'a' }],
  ])('%s stores the erased records once, and the others not again', async (_, headers) => {
    const all = [['one-id', 'two-id'], ['kept-id']];
    await sendLogs(app.internalUrl, BATCH, { headers }); // is not applied yet when the erasure starts
    expect(await erase({ project: PROJECT })).toMatchObject({ state: 'done', records: 2 });
    const results = await Promise.all([1, 2, 3].map(() => sendLogs(app.internalUrl, BATCH, { headers })));
    expect(results.map(({ status: code, accepted }) => [code, accepted])).toEqual(Array(3).fill([200, 3]));
    expect(await sendAgain(headers)).toEqual(all);
    await restartAfterKill();
    expect(await sendAgain(headers)).toEqual(all);
    await app.close();
    await start();
    expect(await sendAgain(headers)).toEqual(all);
    expect(await erase({ project: 'other' })).toMatchObject({ state: 'done', records: 1 });
    expect(await sendAgain(headers)).toEqual(all);
  });

  test('after a restart stores the erased records once', async () => {
    await sendAgain();
    await erase({ project: PROJECT });
    await restartAfterKill();
    expect(await sendAgain()).toEqual([['one-id', 'two-id'], ['kept-id']]);
    expect(await sendAgain()).toEqual([['one-id', 'two-id'], ['kept-id']]);
  });

  test('stores only records from before the time of the erasure', async () => {
    await sendAgain();
    expect(await erase({ project: PROJECT, before: NOW })).toMatchObject({ state: 'done', records: 1 });
    expect(await idsOf(app, PROJECT)).toEqual(['one-id']);
    expect(await sendAgain()).toEqual([['one-id', 'two-id'], ['kept-id']]);
  });

  test('stores records that have no timestamp, if they arrived before the time of the erasure', async () => {
    const record = { id: 'late', project: PROJECT, message: 'no timestamp' };
    const send = async (atMinutes: number) => {
      await app.pass(atMinutes * 60_000);
      await sendLogs(app.internalUrl, [record]);
      await waitForIds(PROJECT, 1);
    };
    await send(0);
    const before = new Date(Date.parse(NOW) + 60_000).toISOString();
    expect(await erase({ project: PROJECT, before })).toMatchObject({ records: 1 });
    await send(2);
    expect(await erase({ project: PROJECT, before })).toMatchObject({ records: 0 });
    await send(1);
  });
});

test('a running backup does not delay an erasure', async () => {
  await sendLogs(app.internalUrl, [logOf(PROJECT, TEXT), logOf('other', 'kept')]);
  const backup = app.store.snapshot(new Set());
  expect(await erase({ project: PROJECT })).toMatchObject({ state: 'done', records: 1 });
  expect(filesWith(TEXT)).toEqual([]);
  expect(await idsOf(app, 'other')).toEqual(['kept-id']);
  await backup.close();
});

test('POST /api/admin/erase needs the scope admin without projects, and a body with a project, a valid time and no other key', async () => {
  for (const token of [tokens.secrets.reader, tokens.secrets.pinned]) {
    expect((await call('POST', { project: PROJECT }, token)).status).toBe(403);
    expect((await call('GET', undefined, token)).status).toBe(403);
  }
  expect((await call('POST', { project: PROJECT }, 'wrong')).status).toBe(401);
  for (const [body, code] of [
    ['{', 'invalid_body'],
    ['"p"', 'invalid_body'],
    [[{ project: 'p' }], 'invalid_body'],
    [{}, 'missing_parameter'],
    [{ project: '' }, 'missing_parameter'],
    [{ project: 'p', before: 'tomorrow' }, 'invalid_parameter'],
    [{ project: 'p'.repeat(70_000) }, 'payload_too_large'],
  ] as const)
    expect((await call('POST', body)).error.code).toBe(code);
  // Otherwise a misspelled `before` would erase everything.
  const { status: httpStatus, error } = await call('POST', { project: PROJECT, Before: '2026-11-14' });
  expect([httpStatus, error]).toEqual([
    400,
    {
      code: 'invalid_parameter',
      message: 'the body has an unknown key; allowed: project, before',
      param: 'Before',
    },
  ]);
  expect(await status()).toBeNull();
});
