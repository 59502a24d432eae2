import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { VerificationOutcome } from '../../src/domain/damage.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Checkpointer } from '../../src/store/duckdb/checkpoint.ts';
import { DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { ReadSpooled, SpooledLines, Store } from '../../src/store/store.ts';
import { micros, NOW, testStoreOptions } from '../support/app.ts';
import { replaceInBlocks } from '../support/duckdb-blocks.ts';
import { edgeRecord } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

let dataDirectory: string;
let store: Store;
/** What was passed to `apply`, as the spool has it. */
let spool: SpooledLines[];
let failures: { kind: string; message: string; outcome: VerificationOutcome }[];

const open = async () => {
  store = await openStore(testStoreOptions(dataDirectory), {
    observe: event => {
      if (event.type !== 'verification_failed') return;
      const { kind, error, outcome } = event;
      failures.push({ kind, message: (error as Error).message, outcome });
    },
  });
};
beforeEach(async () => {
  dataDirectory = createDataDirectory();
  spool = [];
  failures = [];
  await open();
});
afterEach(async () => {
  await store.close();
  removeDataDirectory(dataDirectory);
});

const file = () => join(dataDirectory, 'dendro.duckdb');
const idOf = (sequence: number) => `id-${String(sequence).padStart(4, '0')}`;
const timeOf = (sequence: number) => `2026-11-14T12:00:${String(sequence).padStart(2, '0')}Z`;
const nextSequence = () => spool.reduce((end, block) => Math.max(end, block.firstSequence + block.count), 0);

async function apply(count: number): Promise<void> {
  const first = nextSequence();
  const records = Array.from({ length: count }, (_, i) =>
    edgeRecord({ id: idOf(first + i), at: timeOf(first + i), project: `p${i % 3}` }),
  );
  const block = { ...toLogLines('edge', records), firstSequence: first };
  spool.push(block);
  await store.apply(block);
}

const readSpooled: ReadSpooled = async function* (kind, range) {
  for (const block of spool)
    if (
      block.kind === kind &&
      block.firstSequence < range.nextSequence &&
      block.firstSequence + block.count > range.firstSequence
    )
      yield block;
};

/** Flushes during a backup: the records are in the file only after it, and are not verified. */
async function flushUnverified(): Promise<void> {
  const backup = await store.snapshot(() => {});
  await store.flush(['edge']);
  backup.release();
  await store.usedBytes?.(); // waits for the checkpoint that follows a backup
}

async function ids(): Promise<string[]> {
  const { rows } = await store.query(savedQuery('select id from edge_logs order by id', ['text']), {});
  return rows.map(([id]) => String(id));
}
const allIds = () => Array.from({ length: nextSequence() }, (_, sequence) => idOf(sequence));
const verifiedUpTo = () => store.verifiedUpTo('edge');

/** Another process locks a new DuckDB file until `release`. */
async function lockDatabase(path: string): Promise<{ release(): Promise<unknown> }> {
  const script = `const { DuckDBInstance } = require('@duckdb/node-api');
    DuckDBInstance.create(process.argv[1]).then(() => console.log('locked'));
    process.stdin.on('end', () => process.exit()).resume();`;
  const child = spawn(process.execPath, ['-e', script, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  return {
    release() {
      child.stdin.end();
      return exited;
    },
  };
}

async function reopen(): Promise<void> {
  await store.close();
  await open();
}

describe('a flush', () => {
  test('is verified when it resolves', async () => {
    await apply(10);
    expect([store.flushedUpTo('edge'), verifiedUpTo()]).toEqual([0, 0]);
    await store.flush(['edge']);
    expect([store.flushedUpTo('edge'), verifiedUpTo()]).toEqual([10, 10]);
    expect(failures).toEqual([]);
  });

  test('is not verified during a backup, and is verified after it', async () => {
    await apply(10);
    await flushUnverified();
    expect([store.flushedUpTo('edge'), verifiedUpTo()]).toEqual([10, 0]);
    await store.verifyFlushed?.(readSpooled);
    expect([verifiedUpTo(), failures]).toEqual([10, []]);
  });

  test('stays unverified if the process ends before, and the next one verifies it', async () => {
    await apply(10);
    await store.flush(['edge']);
    await apply(5);
    await flushUnverified();
    await reopen();
    expect([store.flushedUpTo('edge'), verifiedUpTo()]).toEqual([15, 10]);
    await store.verifyFlushed?.(readSpooled);
    expect([verifiedUpTo(), failures]).toEqual([15, []]);
    await reopen();
    expect(verifiedUpTo()).toBe(15);
  });

  test('that is not verified loses no single record to retention, but all of them if all have expired', async () => {
    await apply(10);
    await flushUnverified();
    const fifth = micros(timeOf(5));
    expect(await store.deleteBefore(fifth)).toBe(0);
    await store.verifyFlushed?.(readSpooled);
    expect(await store.deleteBefore(fifth)).toBe(5);
    await apply(10);
    await flushUnverified();
    expect(await store.deleteBefore(micros(timeOf(20)))).toBe(15);
    expect([verifiedUpTo(), failures]).toEqual([20, []]);
    const { mtimeMs } = statSync(dataDirectory);
    await store.verifyFlushed?.(readSpooled);
    expect(statSync(dataDirectory).mtimeMs).toBe(mtimeMs); // nothing is left to verify, so there is no checkpoint
  });

  test('whose checkpoint fails is verified later by the same process, and so are the flushes after it', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      await apply(10);
      mkdirSync(`${file()}.metadata-backup`);
      await expect(store.flush(['edge'])).rejects.toThrow('EISDIR');
      expect([store.flushedUpTo('edge'), verifiedUpTo()]).toEqual([10, 0]);
      rmdirSync(`${file()}.metadata-backup`);
      await store.verifyFlushed?.(readSpooled);
      expect(verifiedUpTo()).toBe(10);
      vi.advanceTimersByTime(5_000); // the pause after a failed flush
      await apply(5);
      await store.flush(['edge']);
      expect([verifiedUpTo(), await ids(), failures]).toEqual([15, allIds(), []]);
    } finally {
      vi.useRealTimers();
    }
  });
});

test('while checkpoints are rejected, verification tries one every few seconds only', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const checkpoints = vi.spyOn(Checkpointer.prototype, 'run').mockResolvedValue(false);
  try {
    await apply(10);
    await store.flush(['edge']);
    checkpoints.mockClear();
    for (let round = 0; round < 3; round++) await store.verifyFlushed?.(readSpooled);
    expect(checkpoints).toHaveBeenCalledTimes(1);
    checkpoints.mockRestore();
    vi.advanceTimersByTime(5_000);
    await store.verifyFlushed?.(readSpooled);
    expect([verifiedUpTo(), failures]).toEqual([10, []]);
  } finally {
    checkpoints.mockRestore();
    vi.useRealTimers();
  }
});

describe('damage between the checkpoint and the verification', () => {
  test.each([
    ['a block with a wrong checksum', false, /Corrupt database file/],
    ['a wrong record in a block with a valid checksum', true, /10 records of a part differ/],
  ])('%s is found in the file, and the part is rewritten from the spool', async (_, fixChecksum, message) => {
    await apply(5);
    await store.flush(['edge']);
    await apply(10);
    await flushUnverified();
    expect(replaceInBlocks(file(), idOf(7), 'damaged', fixChecksum)).toBeGreaterThan(0);
    expect(await ids()).toEqual(allIds()); // DuckDB still has the right block in memory
    await store.verifyFlushed?.(readSpooled);
    expect(failures).toMatchObject([{ kind: 'edge', outcome: 'rewritten' }]);
    expect(failures[0]?.message).toMatch(message);
    expect(verifiedUpTo()).toBe(15);
    expect(await ids()).toEqual(allIds());
    await reopen();
    expect(await ids()).toEqual(allIds()); // from the file
  });

  test('if the spool has lost the records, the part stays as it is and no longer keeps other segments', async () => {
    await apply(10);
    await flushUnverified();
    replaceInBlocks(file(), idOf(7), 'damaged', true);
    spool = spool.map(block => ({ ...block, count: 0 }));
    await store.verifyFlushed?.(readSpooled);
    expect(failures).toMatchObject([{ outcome: 'not in the spool' }]);
    expect(failures[0]?.message).toContain('the spool has only 0 of them');
    expect(verifiedUpTo()).toBe(10);
  });

  test('if the spool cannot be read, the part and its segments stay, and the next attempt rewrites the part', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      await apply(10);
      await flushUnverified();
      replaceInBlocks(file(), idOf(7), 'damaged', true);
      await store.verifyFlushed?.(async function* () {
        yield* [];
        throw new Error('the disk returned an error');
      });
      expect([verifiedUpTo(), failures]).toMatchObject([0, [{ outcome: 'retrying' }]]);
      vi.advanceTimersByTime(60_000);
      await store.verifyFlushed?.(readSpooled);
      expect([verifiedUpTo(), failures]).toMatchObject([10, [{}, { outcome: 'rewritten' }]]);
    } finally {
      vi.useRealTimers();
    }
  });

  test.each([
    ['has', true],
    ['has lost', false],
  ])('records that retention deletes during the repair stay deleted if the spool %s them', async (_, has) => {
    await apply(10);
    await flushUnverified();
    replaceInBlocks(file(), idOf(7), 'damaged', true);
    await store.verifyFlushed?.(async function* (kind, range) {
      if (has) yield* readSpooled(kind, range);
      expect(await store.deleteBefore(micros(timeOf(20)))).toBe(10);
    });
    expect([await ids(), verifiedUpTo(), failures]).toEqual([[], 10, []]);
    const backup = await store.snapshot(() => {});
    backup.release();
    expect(backup.records.get('edge')).toBe(0);
  });

  test('a copy that cannot be opened says nothing about the records, and the next attempt verifies them', async () => {
    await apply(10);
    await flushUnverified();
    const lock = await lockDatabase(join(dataDirectory, 'staging', 'verify.duckdb'));
    try {
      await expect(store.verifyFlushed?.(readSpooled)).rejects.toThrow('Could not set lock');
    } finally {
      await lock.release();
    }
    expect([verifiedUpTo(), failures]).toEqual([0, []]);
    await store.verifyFlushed?.(readSpooled);
    expect([verifiedUpTo(), failures]).toEqual([10, []]);
  });

  test('a part to which an earlier version has added records is not replaced by those of the spool', async () => {
    await apply(10);
    await flushUnverified();
    await store.close();
    const instance = await DuckDBInstance.create(file());
    const connection = await instance.connect();
    await connection.run("insert into edge_part_1 select * replace ('added' as id) from edge_part_1 limit 1");
    connection.closeSync();
    instance.closeSync();
    await open();
    await store.verifyFlushed?.(readSpooled);
    expect([await ids(), verifiedUpTo(), failures]).toEqual([['added', ...allIds()], 10, []]);
  });
});

describe('a compaction', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const flushParts = async () => {
    for (let part = 0; part < 3; part++) {
      await apply(4);
      await store.flush(['edge']);
    }
  };
  const compact = async () => {
    await store.compact?.(micros(NOW));
    vi.advanceTimersByTime(30_000); // from now on the kind is idle
    return store.compact?.(micros(NOW));
  };
  const parts = async () => {
    const sql =
      "select table_name from duckdb_tables() where database_name = 'logs' and table_name like 'edge\\_%' escape '\\' order by 1";
    return (await store.query(savedQuery(sql, ['text']), {})).rows.map(([name]) => String(name));
  };

  test('keeps its sources if the copy differs from what was written to them', async () => {
    await flushParts();
    await store.close();
    expect(replaceInBlocks(file(), idOf(6), 'damaged', true)).toBeGreaterThan(0);
    await open();
    const before = await parts();
    await expect(compact()).rejects.toThrow(/8 records of a part differ/);
    expect(failures).toMatchObject([{ kind: 'edge', outcome: 'copy dropped' }]);
    expect(await parts()).toEqual(before);
    expect(await ids()).toHaveLength(12);
  });

  test('merges a part whose damage could not be repaired, because the spool has lost its records', async () => {
    await flushParts();
    await apply(4);
    await flushUnverified();
    replaceInBlocks(file(), idOf(13), 'damaged', true);
    await store.verifyFlushed?.(async function* () {});
    expect(failures).toHaveLength(1);
    await reopen(); // DuckDB reads the damaged record from now on
    expect(await compact()).toBe(true);
    expect(await ids()).toEqual([...allIds().filter(id => id !== idOf(13)), 'damaged'].sort());
    expect(failures).toHaveLength(1);
  });

  test('passes the checksum on to the compacted part', async () => {
    await flushParts();
    expect(await compact()).toBe(true);
    expect(await parts()).toEqual([expect.stringMatching(/^edge_compacted_/), 'edge_part_1']);
    const sql = 'select count(*), sum(records) from logs.part_checksums';
    expect((await store.query(savedQuery(sql, ['integer', 'integer']), {})).rows).toEqual([[2, 12]]);
  });
});
