import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Quarantine } from '../../src/intake/quarantine.ts';
import { parseExactJson, stringifyExactJson } from '../../src/logs/exact-json.ts';
import { parseQuarantined } from '../../src/logs/quarantine-line.ts';
import type { Event } from '../../src/observe/event.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { sendLogs } from '../support/logs.ts';
import { listOpenFiles } from '../support/open-files.ts';

const directory = useDirectory();

const file = () => join(directory, 'quarantine.ndjson');
const olderFile = () => join(directory, 'quarantine.older.ndjson');
/** Complete lines only, because the last one may still be written. */
const readLines = (path: string) =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];

describe('quarantine of rejected records', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({ store: testStoreOptions(directory) });
  });
  afterEach(() => app.close());

  const waitForLines = async (count: number) => {
    await expect.poll(() => readLines(file())).toHaveLength(count);
    return readLines(file());
  };

  test('a rejected record is kept with source, reason and time, in a file with mode 0600', async () => {
    const record = { message: 'of no project', metadata: { a: [1, null, 'ä'] } };
    const { errors } = await sendLogs(app.internalUrl, [record], { query: '?source=gotrue.logs.prod' });
    expect(JSON.parse((await waitForLines(1))[0] ?? '')).toEqual({
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
    ['a value that is not an object', '12345678901234567890123'],
    ['a string', '"lone surrogate: \\ud800"'],
    ['an array', '[[1,[2]]]'],
  ])('a rejected record that is %s can be read back exactly', async (_, json) => {
    await sendLogs(app.internalUrl, json.startsWith('[') ? json : `[${json}]`);
    const quarantined = parseQuarantined(parseExactJson((await waitForLines(1))[0] ?? ''), 3);
    const value =
      quarantined !== undefined && 'value' in quarantined.parsed ? quarantined.parsed.value : undefined;
    const sent = parseExactJson(json.startsWith('[') ? json.slice(1, -1) : json);
    expect(stringifyExactJson(value)).toBe(stringifyExactJson(sent));
    expect(quarantined).toMatchObject({ kind: 'edge', parsed: { index: 3 } });
  });

  test('an invalid NDJSON line can be read back unchanged', async () => {
    const line = '{"project":"p","message":"\u2028 \\" broken';
    const headers = { 'Content-Type': 'application/x-ndjson' };
    await sendLogs(app.internalUrl, `${line}\n{"also": broken`, { headers });
    const [first = ''] = await waitForLines(2);
    expect(parseQuarantined(parseExactJson(first), 0)).toMatchObject({
      kind: 'edge',
      parsed: { line, rejection: { code: 'invalid_json' } },
    });
  });

  test('a record that is nested too deeply to be written is kept as its reason only', async () => {
    await sendLogs(app.internalUrl, `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
    expect(JSON.parse((await waitForLines(1))[0] ?? '')).toMatchObject({
      quarantine: { code: 'too_deep' },
      record: null,
    });
  });

  test('400,000 rejected records do not exceed the size limit of the file', async () => {
    const { status, rejected } = await sendLogs(app.internalUrl, `[${'7,'.repeat(399_999)}7]`);
    expect([status, rejected]).toEqual([422, 400_000]);
    await expect.poll(() => readLines(file()).length).toBeGreaterThan(10_000);
    await app.close();
    expect(statSync(file()).size).toBeLessThan(33 * 1024 * 1024);
  });

  test('if the quarantine cannot be written, the sender still gets its response and the failure is reported', async () => {
    mkdirSync(file());
    const response = await sendLogs(app.internalUrl, [{ project: 'p', message: 'm', id: 'a' }, 7]);
    expect(response).toMatchObject({ status: 200, accepted: 1, rejected: 1 });
    await expect.poll(() => app.events.some(({ type }) => type === 'quarantine_failed')).toBe(true);
    rmSync(file(), { recursive: true });
    await sendLogs(app.internalUrl, [8]);
    expect(await waitForLines(1)).toHaveLength(1);
  });
});

describe('the quarantine file', () => {
  let events: Event[];
  let quarantine: Quarantine;
  beforeEach(() => {
    events = [];
    quarantine = new Quarantine(directory, event => events.push(event), 1000);
  });
  const keepAll = async (lines: readonly string[]) => {
    for (const line of lines) {
      quarantine.append(`${line}\n`);
      await quarantine.idle();
    }
  };
  const numbered = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => `line ${from + i}`.padEnd(99, '.'));

  test('a full file is rotated, and one old file is kept', async () => {
    await keepAll(numbered(0, 25));
    expect(readLines(olderFile())).toEqual(numbered(10, 20));
    expect(readLines(file())).toEqual(numbered(20, 25));
  });

  test('after a full file was moved away, lines go to a new file, which is rotated when it is full itself', async () => {
    await keepAll(numbered(0, 10));
    renameSync(file(), join(directory, 'moved.ndjson'));
    await keepAll(numbered(10, 21));
    expect(events.filter(({ type }) => type === 'quarantine_failed')).toEqual([]);
    expect(readLines(olderFile())).toEqual(numbered(10, 20));
    expect(readLines(file())).toEqual(numbered(20, 21));
  });

  test('a line is not joined to a line that a full disk or a crash has cut off', async () => {
    writeFileSync(file(), 'whole\nhal');
    await keepAll(['next', 'last']);
    expect(readLines(file())).toEqual(['whole', 'hal', 'next', 'last']);
  });

  test.runIf(process.platform === 'linux')(
    'if the file cannot be opened for a backup, the older file is closed',
    async () => {
      writeFileSync(olderFile(), 'line\n');
      symlinkSync(file(), file()); // a loop of links
      await expect(new Quarantine(directory, () => {}).openFiles()).rejects.toThrow('ELOOP');
      expect(listOpenFiles(directory)).toEqual([]);
    },
  );

  test('lines beyond the size of the queue are dropped and reported', async () => {
    for (const line of numbered(0, 100)) quarantine.append(`${line}\n`);
    await quarantine.idle();
    const dropped = events.filter(({ type }) => type === 'quarantine_failed').length;
    expect(dropped).toBeGreaterThan(50);
    expect(readLines(olderFile()).length + readLines(file()).length).toBe(100 - dropped);
    quarantine.append('later\n');
    await quarantine.idle();
    expect(readLines(file()).at(-1)).toBe('later');
  });
});
