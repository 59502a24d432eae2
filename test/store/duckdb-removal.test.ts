import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { micros, NOW } from '../support/app.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';

const DAY = 86_400_000_000n;

let embedded: EmbeddedStore;
beforeEach(async () => {
  embedded = await EmbeddedStore.open();
});
afterEach(() => embedded.remove());

const recordsOfParts = () => embedded.parts.map(({ records }) => records);
describe('retention', () => {
  /** Ten records, one second apart, from here on. */
  const START = micros(NOW) - 40n * DAY;
  const atSecond = (seconds: bigint) => START + seconds * 1_000_000n;
  const deleteExpired = (expiredBefore: bigint, rewriteBefore = 0n) =>
    embedded.store.maintain({ expire: { expiredBefore, rewriteBefore } });

  test('one call rewrites at most one part of each kind, the oldest first', async () => {
    await embedded.flush(embedded.createRecords(10, START));
    await embedded.flush(embedded.createRecords(10, START + 1n));
    await embedded.flush(embedded.createRecords(10, START), 'auth');
    expect(await deleteExpired(atSecond(5n), atSecond(1n))).toBe(10);
    expect(embedded.parts).toMatchObject([
      { kind: 'edge', records: 10, since: START + 1n },
      { kind: 'edge', records: 5 },
      { kind: 'auth', records: 5 },
    ]);
    expect(await deleteExpired(atSecond(5n), atSecond(1n))).toBe(5);
    expect(recordsOfParts()).toEqual([5, 5, 5]);
  });

  test('if the part of one kind cannot be rewritten, the expired records of the others are removed and counted', async () => {
    await embedded.flush(embedded.createRecords(10, START), 'auth');
    await embedded.flush(embedded.createRecords(10, START));
    const obstacle = embedded.partPath('auth-000004.duckdb.tmp'); // the part after the one of edge
    mkdirSync(obstacle);
    expect(await deleteExpired(atSecond(5n), atSecond(1n))).toBe(5);
    const message = expect.stringContaining('auth-000004');
    expect(embedded.eventsOf('retention_failed')).toMatchObject([{ error: { message } }]);
    expect(embedded.parts).toMatchObject([
      { kind: 'auth', records: 10 },
      { kind: 'edge', records: 5 },
    ]);
    rmSync(obstacle, { recursive: true });
    expect(await deleteExpired(atSecond(5n), atSecond(1n))).toBe(5);
    expect(recordsOfParts()).toEqual([5, 5]);
  });
});

describe('an erasure', () => {
  const TEXT = 'needle-7f3a9c51';
  /** DuckDB does not compress texts of this length, so they are in the file as they are. */
  const largeRecords = (count: number, project: string, text: string): LogRecord[] =>
    embedded
      .createRecords(count)
      .map(each => ({ ...each, project, id: `${text} ${randomBytes(4500).toString('base64')}` }));
  const filesWithText = () =>
    readdirSync(embedded.dataDirectory, { recursive: true })
      .map(String)
      .filter(name => /\.\w+$/.test(name) && readFileSync(embedded.pathOf(name)).includes(TEXT));

  test('rewrites the parts with the project, leaves others alone, and no file has its text', async () => {
    await embedded.flush([...largeRecords(20, 'erased', TEXT), ...largeRecords(5, 'kept', 'kept')]);
    await embedded.flush(largeRecords(10, 'kept', 'kept'));
    await embedded.flush(largeRecords(20, 'erased', TEXT), 'auth');
    const [, other] = embedded.parts;
    expect(filesWithText()).toHaveLength(2);
    expect(await embedded.store.eraseProject({ project: 'erased' })).toBe(40);
    expect(filesWithText()).toEqual([]);
    expect(embedded.parts).toMatchObject([other, { kind: 'edge', records: 5 }]);
    expect(await embedded.ids()).toHaveLength(15);
    expect(await embedded.ids('auth')).toEqual([]);
    await embedded.reopen();
    expect(filesWithText()).toEqual([]);
  });

  test('that a close interrupts can be repeated', async () => {
    for (let i = 0; i < 5; i++)
      await embedded.flush([...largeRecords(20, 'erased', TEXT), ...largeRecords(5, 'kept', 'kept')]);
    const erasing = embedded.store.eraseProject({ project: 'erased' }).catch(() => 0);
    await embedded.close();
    expect(await erasing).toBeLessThanOrEqual(100);
    await embedded.reopen();
    await embedded.store.eraseProject({ project: 'erased' });
    expect(filesWithText()).toEqual([]);
    expect(await embedded.ids()).toHaveLength(25);
  });
});
