import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Quarantine } from '../../src/intake/quarantine.ts';
import { parseExactJson, stringifyExactJson } from '../../src/logs/exact-json.ts';
import { parseQuarantined } from '../../src/logs/quarantine-line.ts';
import type { Event } from '../../src/observe/event.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';

let folder: string;
beforeEach(() => {
  folder = makeDataFolder();
});
afterEach(() => removeDataFolder(folder));

const file = () => join(folder, 'quarantine.ndjson');
const older = () => join(folder, 'quarantine.older.ndjson');
/** Whole lines: one that is being written is not counted. */
const linesOf = (path: string) =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];

describe('a rejected record', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({ store: testStoreOptions(folder) });
  });
  afterEach(() => app.close());

  const kept = async (count: number) => {
    await expect.poll(() => linesOf(file())).toHaveLength(count);
    return linesOf(file());
  };

  test('is kept with its source, reason and time, for its user alone', async () => {
    const record = { message: 'of no project', metadata: { a: [1, null, 'ä'] } };
    const { errors } = await sendLogs(app.internalUrl, [record], { query: '?source=gotrue.logs.prod' });
    expect(JSON.parse((await kept(1))[0] ?? '')).toEqual({
      quarantine: {
        source: 'auth',
        code: 'no_project',
        message: errors[0]?.message,
        received_at: '2026-11-14T12:34:56.789012Z',
      },
      record,
    });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['an object', '{"message":"m","n":1234567890123456789012345,"e":1e400,"z":-0.10}'],
    ['a value that is no object', '12345678901234567890123'],
    ['text', '"half a pair: \\ud800"'],
    ['an array', '[[1,[2]]]'],
  ])('that is %s can be read back to the digit', async (_, json) => {
    await sendLogs(app.internalUrl, json.startsWith('[') ? json : `[${json}]`);
    const read = parseQuarantined(parseExactJson((await kept(1))[0] ?? ''), 3);
    const value = read !== undefined && 'value' in read.parsed ? read.parsed.value : undefined;
    const sent = parseExactJson(json.startsWith('[') ? json.slice(1, -1) : json);
    expect(stringifyExactJson(value)).toBe(stringifyExactJson(sent));
    expect(read).toMatchObject({ kind: 'edge', parsed: { index: 3 } });
  });

  test('that is a broken line can be read back as that line', async () => {
    const line = '{"project":"p","message":"\u2028 \\" broken';
    const headers = { 'Content-Type': 'application/x-ndjson' };
    await sendLogs(app.internalUrl, `${line}\n{"also": broken`, { headers });
    const [first = ''] = await kept(2);
    expect(parseQuarantined(parseExactJson(first), 0)).toMatchObject({
      kind: 'edge',
      parsed: { line, rejection: { code: 'invalid_json' } },
    });
  });

  test('that nests too deeply to be written is kept as its reason alone', async () => {
    await sendLogs(app.internalUrl, `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
    expect(JSON.parse((await kept(1))[0] ?? '')).toMatchObject({
      quarantine: { code: 'too_deep' },
      record: null,
    });
  });

  test('of a batch that is sent again is kept once', async () => {
    const body = [{ project: 'p', message: 'm', id: 'a' }, 7];
    await sendLogs(app.internalUrl, body);
    await sendLogs(app.internalUrl, body);
    await expect.poll(() => idsOf(app, 'p')).toEqual(['a']);
    expect(await kept(1)).toHaveLength(1);
  });

  test('by the million takes no more room than the file may have', async () => {
    const { status, rejected } = await sendLogs(app.internalUrl, `[${'7,'.repeat(399_999)}7]`);
    expect([status, rejected]).toEqual([422, 400_000]);
    await expect.poll(() => linesOf(file()).length).toBeGreaterThan(10_000);
    await app.close();
    expect(statSync(file()).size).toBeLessThan(33 * 1024 * 1024);
  });

  test('is answered all the same where it cannot be kept, and that is told', async () => {
    mkdirSync(file());
    const answer = await sendLogs(app.internalUrl, [{ project: 'p', message: 'm', id: 'a' }, 7]);
    expect(answer).toMatchObject({ status: 200, accepted: 1, rejected: 1 });
    await expect.poll(() => app.events.some(({ type }) => type === 'quarantine_failed')).toBe(true);
    rmSync(file(), { recursive: true });
    await sendLogs(app.internalUrl, [8]);
    expect(await kept(1)).toHaveLength(1);
  });
});

describe('the file', () => {
  const keepAll = async (lines: readonly string[], maxBytes: number, events: Event[] = []) => {
    const quarantine = new Quarantine(folder, event => events.push(event), maxBytes);
    for (const line of lines) {
      quarantine.keep(line);
      await quarantine.idle();
    }
  };
  const numbered = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => `line ${from + i}`.padEnd(99, '.'));

  test('takes the place of the older one when it is full, and another is begun', async () => {
    await keepAll(
      numbered(0, 25).map(line => `${line}\n`),
      1000,
    );
    expect(linesOf(older())).toEqual(numbered(10, 20));
    expect(linesOf(file())).toEqual(numbered(20, 25));
  });

  test('goes on after a restart where it was', async () => {
    const lines = numbered(0, 12).map(line => `${line}\n`);
    for (const line of lines) await keepAll([line], 1000);
    expect(linesOf(older())).toEqual(numbered(0, 10));
    expect(linesOf(file())).toEqual(numbered(10, 12));
  });

  test('is written in order, however much comes at once', async () => {
    const quarantine = new Quarantine(folder, () => {});
    for (const line of numbered(0, 200)) quarantine.keep(`${line}\n`);
    await quarantine.idle();
    expect(linesOf(file())).toEqual(numbered(0, 200));
  });

  test('keeps no more waiting in memory than it may hold, and tells what is left out', async () => {
    const events: Event[] = [];
    const quarantine = new Quarantine(folder, event => events.push(event), 1000);
    for (const line of numbered(0, 100)) quarantine.keep(`${line}\n`);
    await quarantine.idle();
    const told = events.filter(({ type }) => type === 'quarantine_failed').length;
    expect(told).toBeGreaterThan(50);
    expect(linesOf(older()).length + linesOf(file()).length).toBe(100 - told);
    quarantine.keep('later\n');
    await quarantine.idle();
    expect(linesOf(file()).at(-1)).toBe('later');
  });
});
