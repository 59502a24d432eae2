import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { openDatabase } from '../../src/store/duckdb/database.ts';
import { Parts } from '../../src/store/duckdb/parts.ts';
import { inspectStore } from '../../src/store/open-store.ts';
import { micros, NOW } from '../support/app.ts';
import { EmbeddedStore, overwriteRandomly } from '../support/embedded-store.ts';
import { errorWithoutPrivileges } from '../support/privileges.ts';

const HOUR = 3_600_000_000n;
const START = micros(NOW) - 12n * HOUR;

const ROUNDS = 40;

let embedded: EmbeddedStore;
/** The part that is damaged, and a copy of its file. */
let file: string;
let copy: string;

/** Records whose texts cannot be compressed, so that they fill most blocks of a part. */
const largeRecords = (count: number, at: bigint): LogRecord[] =>
  embedded
    .createRecords(count, at)
    .map(record => ({ ...record, eventMessage: randomBytes(4000).toString('base64') }));

/** DuckDB can attach it, and each of its blocks is sound. */
const copyPartOfSameSize = (path: string) => {
  const other = embedded.partPath(embedded.parts[0]?.file ?? '');
  expect(statSync(other).size).toBe(statSync(path).size);
  copyFileSync(other, path);
};

/** Three parts of edge records, one each hour, with n0 to n29, n30 to n59 and n60 to n89, and a part of auth records. */
beforeEach(async () => {
  embedded = await EmbeddedStore.open();
  for (let i = 0n; i < 3n; i++) await embedded.flush(largeRecords(30, START + i * HOUR));
  await embedded.flush(largeRecords(5, START), 'auth');
  await embedded.close();
  file = embedded.parts[1]?.file ?? '';
  copy = embedded.pathOf('copy-of-the-part');
  copyFileSync(embedded.partPath(file), copy);
});
afterEach(() => embedded.remove());

const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, i) => `n${first + i}`);
const ALL = idsFrom(0, 90);
const WITHOUT_DAMAGED = [...idsFrom(0, 30), ...idsFrom(60, 30)];
const isSetAside = () => embedded.manifest.setAside.some(part => part.file === file);
/** Reads all texts. */
const read = (kind = 'edge') => `select id from ${kind}_logs where length(event_message) > 0`;
const readIds = async (kind?: string) => {
  const numbers = (await embedded.query(read(kind))).rows.map(([id]) => Number(String(id).slice(1)));
  return numbers.sort((a, b) => a - b).map(number => `n${number}`);
};

/** The blocks in the middle have texts. */
const damageBlock = () =>
  overwriteRandomly(embedded.partPath(file), Math.floor(statSync(embedded.partPath(file)).size / 2), 100);

async function expectOnlyDamagedPartMissing(): Promise<void> {
  expect(await readIds()).toEqual(WITHOUT_DAMAGED);
  const missingParts = async (sql: string, start?: bigint, end?: bigint) =>
    (await embedded.query(sql, { range: { start, end } })).missingParts;
  const edge = read();
  expect(await missingParts(edge)).toBe(1);
  expect(await missingParts(edge, START + HOUR)).toBe(1);
  expect(await missingParts(edge, undefined, START + HOUR)).toBe(1);
  expect(await missingParts(edge, undefined, START + HOUR - 1n)).toBe(0);
  expect(await missingParts(edge, START + 2n * HOUR)).toBe(0);
  expect(await missingParts(read('auth'))).toBe(0);
  expect(await readIds('auth')).toHaveLength(5);
  expect(embedded.store.readStatistics().embedded).toMatchObject({ setAsideParts: 1 });
}

describe('a start', () => {
  test.each<[state: string, damage: (path: string) => void, reason: string, problem: RegExp]>([
    ['missing', path => rmSync(path), 'missing', /does not exist/],
    ['empty', path => truncateSync(path), 'damaged', /has 0 bytes, but \d+ were written/],
    [
      'truncated',
      path => truncateSync(path, statSync(path).size - 1),
      'damaged',
      /bytes, but \d+ were written/,
    ],
    ['too long', path => writeFileSync(path, 'x', { flag: 'a' }), 'damaged', /bytes, but \d+ were written/],
    [
      'without a valid header',
      path => overwriteRandomly(path, 0, 4096),
      'damaged',
      /differs from what was written/,
    ],
    [
      'another file of the same size',
      path => writeFileSync(path, Buffer.alloc(statSync(path).size, 'x')),
      'damaged',
      /differs/,
    ],
    ['another part of the same size', copyPartOfSameSize, 'damaged', /differs from what was written/],
  ])('sets aside a part that is %s, and serves all others', async (_, damage, reason, problem) => {
    const path = embedded.partPath(file);
    damage(path);
    const damaged = existsSync(path) ? readFileSync(path) : undefined;
    await embedded.reopen();
    const event = { type: 'part_set_aside', kind: 'edge', file };
    expect(embedded.eventsOf('part_set_aside')[0]).toEqual({
      ...event,
      problem: expect.stringMatching(problem),
    });
    expect(embedded.manifest.setAside).toMatchObject([{ file, kind: 'edge', records: 30, reason }]);
    expect(existsSync(path)).toBe(false);
    if (damaged !== undefined) expect(readFileSync(`${path}.damaged`).equals(damaged)).toBe(true);
    await expectOnlyDamagedPartMissing();
    const { setAside } = await inspectStore('duckdb', { dataDirectory: embedded.dataDirectory });
    expect(setAside).toEqual([
      { file: `parts/${file}`, place: '', problem: `it was set aside, because it is ${reason}` },
    ]);

    await embedded.reopen();
    expect(embedded.eventsOf('part_set_aside')).toEqual([{ ...event, problem: `it is ${reason}` }]);
    await expectOnlyDamagedPartMissing();
  });

  test('uses a part again when its file was restored, and deletes the damaged file', async () => {
    damageBlock();
    await embedded.reopen();
    await readIds();
    expect(isSetAside()).toBe(true);
    await embedded.close();
    copyFileSync(copy, embedded.partPath(file));
    await embedded.reopen();
    expect(embedded.events).toEqual([]);
    expect(await readIds()).toEqual(ALL);
    expect(embedded.manifest.setAside).toEqual([]);
    expect(existsSync(embedded.partPath(`${file}.damaged`))).toBe(false);
    await embedded.reopen();
    expect(await readIds()).toEqual(ALL);
  });
});

describe('a query', () => {
  test('that reads a damaged block sets the part aside and returns all other records', async () => {
    damageBlock();
    await embedded.reopen();
    expect(embedded.events).toEqual([]);
    expect(await readIds('auth')).toHaveLength(5);
    expect((await embedded.query(read(), { range: { start: START + 2n * HOUR } })).rows).toHaveLength(30);
    expect(isSetAside()).toBe(false); // no query has read it
    await expectOnlyDamagedPartMissing();
    expect(embedded.eventsOf('part_set_aside')).toEqual([
      { type: 'part_set_aside', kind: 'edge', file, problem: 'its content differs from what was written' },
    ]);
    expect(existsSync(embedded.partPath(`${file}.damaged`))).toBe(true);
    await embedded.flush(embedded.createRecords(1));
    expect(await readIds()).toHaveLength(61);
  });

  test('that runs while others read the same damaged part succeeds too', async () => {
    damageBlock();
    await embedded.reopen();
    const results = await Promise.all(Array.from({ length: 8 }, () => readIds()));
    for (const ids of results) expect(ids).toEqual(WITHOUT_DAMAGED);
    expect(embedded.eventsOf('part_set_aside')).toHaveLength(1);
  });

  test('that is cancelled, or reaches its time limit, does not wait for the check of the parts, which reads each once', async () => {
    damageBlock();
    await embedded.reopen();
    const { setAsideDamaged } = Parts.prototype;
    const cancellation = new AbortController();
    const checked: string[] = [];
    let proceed = () => {};
    const gate = new Promise<void>(resolve => {
      proceed = resolve;
    });
    vi.spyOn(Parts.prototype, 'setAsideDamaged').mockImplementation(async function (this: Parts, suspects) {
      cancellation.abort(new Error('cancelled'));
      await gate;
      checked.push(...suspects.map(({ alias }) => alias));
      await setAsideDamaged.call(this, suspects);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const { signal } = cancellation;
    await expect(embedded.query(read(), { signal })).rejects.toThrow('cancelled');
    const endsAt = performance.now() + 500;
    await expect(embedded.query(read(), { endsAt })).rejects.toMatchObject({ code: 'query_timeout' });
    proceed();
    await expect.poll(isSetAside).toBe(true);
    await expectOnlyDamagedPartMissing();
    expect(checked).toEqual([...new Set(checked)]);
  });

  test('never returns a wrong row or fails, wherever bytes of the part are overwritten', async () => {
    const { size } = statSync(copy);
    const columns = 'id, timestamp, project, event_message, metadata, url, path';
    const hashes = async () =>
      (await embedded.query(`select id || ' ' || hash(${columns}) from edge_logs order by 1`)).rows
        .flat()
        .map(String);
    await embedded.reopen();
    const complete = await hashes();
    const withoutDamaged = complete.filter(hash => !/^n[345]\d /.test(hash));
    let setAside = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await embedded.close();
      copyFileSync(copy, embedded.partPath(file));
      const offset = Math.floor((round / ROUNDS) * size);
      overwriteRandomly(embedded.partPath(file), offset, 1 + ((round * 371) % 5000));
      await embedded.reopen();
      const rows = await hashes();
      if (isSetAside()) setAside++;
      // The damage can be in bytes that no query reads.
      expect(rows, `bytes from ${offset}`).toEqual(isSetAside() ? withoutDamaged : complete);
      expect(await readIds('auth')).toHaveLength(5);
    }
    expect(setAside).toBeGreaterThan(ROUNDS / 2);
  });
});

describe('a compaction that reads a damaged part', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('sets it aside, and merges the others when it runs again', async () => {
    damageBlock();
    await embedded.reopen();
    const compactWhenIdle = async () => {
      vi.advanceTimersByTime(30_000);
      return embedded.store.maintain('compact');
    };
    await expect(compactWhenIdle()).rejects.toThrow('Corrupt database file');
    expect(isSetAside()).toBe(true);
    vi.advanceTimersByTime(600_000); // the pause after a failed compaction
    expect(await compactWhenIdle()).toBeGreaterThan(0);
    expect(embedded.parts.filter(({ kind }) => kind === 'edge')).toHaveLength(1);
    await expectOnlyDamagedPartMissing();
    await embedded.close();
    copyFileSync(copy, embedded.partPath(file));
    await embedded.reopen();
    expect(await readIds()).toEqual(ALL);
  });
});

describe('the removal of records', () => {
  test('an erasure sets aside a damaged part, and erases the project from all others, and from this one when it is restored', async () => {
    damageBlock();
    await embedded.reopen();
    // Two parts with 10 of 30 records each, and one of 5 records with 2.
    expect(await embedded.store.eraseProject({ project: 'p0' })).toBe(22);
    expect(isSetAside()).toBe(true);
    const left = (ids: string[]) => ids.filter(id => Number(id.slice(1)) % 3 !== 0);
    expect(await readIds()).toEqual(left(WITHOUT_DAMAGED));
    const lastOfDamaged = START + HOUR + 29_000_000n; // n59, of p2
    expect(await embedded.store.eraseProject({ project: 'p2', beforeMicros: lastOfDamaged })).toBe(11);

    await embedded.close();
    copyFileSync(copy, embedded.partPath(file));
    await embedded.reopen();
    const isLater = (id: string) => Number(id.slice(1)) % 3 === 1 || Number(id.slice(1)) >= 59;
    expect(await readIds()).toEqual(left(ALL).filter(isLater));
    expect(existsSync(embedded.partPath(file))).toBe(false);
  });

  test('retention deletes the file of a part that was set aside when all of its records have expired', async () => {
    damageBlock();
    await embedded.reopen();
    await readIds();
    const deleteExpired = (expiredBefore: bigint) =>
      embedded.store.maintain({ expire: { expiredBefore, rewriteBefore: 0n } });
    const { until = 0n } = embedded.manifest.setAside[0] ?? {};
    await deleteExpired(until);
    expect(isSetAside()).toBe(true);
    await deleteExpired(until + 1n);
    expect(isSetAside()).toBe(false);
    expect(existsSync(embedded.partPath(`${file}.damaged`))).toBe(false);
    expect((await embedded.query(read())).missingParts).toBe(0);
  });
});

test('a part that is set aside while it is merged is not replaced, so that its records are not there twice', async () => {
  const { dataDirectory } = embedded;
  const database = await openDatabase({ dataDirectory, memoryLimit: '100MB' });
  const parts = await Parts.open({ database, observe: () => {}, onFatalError: () => {} });
  const sources = parts.list('edge');
  damageBlock();
  await parts.setAsideDamaged(sources);
  await expect(parts.commit({ remove: sources })).rejects.toThrow('set aside meanwhile');
  expect(parts.list('edge')).toHaveLength(2);
  await parts.close();
  database.close();
  await embedded.reopen();
  await expectOnlyDamagedPartMissing();
});

describe('only damage sets a part aside', () => {
  test('a start that may not read a part fails, and the part stays', async () => {
    chmodSync(embedded.partPath(file), 0);
    const error = await errorWithoutPrivileges(embedded.dataDirectory, () => embedded.reopen());
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as Error).message).toMatch(new RegExp(`cannot read \\S+${file}: EACCES`));
    chmodSync(embedded.partPath(file), 0o600);
    await embedded.reopen();
    expect(await readIds()).toEqual(ALL);
  });

  test('a query that needs more memory than it may use fails, and the parts stay', async () => {
    await embedded.reopen({ memoryLimit: '1MB' });
    const needsMemory = 'select string_agg(event_message) from edge_logs, range(100)';
    await expect(embedded.query(needsMemory)).rejects.toThrow(/memory/i);
    expect(embedded.manifest.setAside).toEqual([]);
    await embedded.reopen();
    expect(await readIds()).toEqual(ALL);
  });
});
