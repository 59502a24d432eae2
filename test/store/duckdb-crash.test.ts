import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readDataFiles } from '../../src/backup/data-files.ts';
import { readBack } from '../../src/backup/read-back.ts';
import { unpack } from '../../src/backup/unpack.ts';
import { OperatorError } from '../../src/domain/errors.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { Event } from '../../src/observe/event.ts';
import { type DuckDBConnection, DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { metadataBackupOf, saveMetadata } from '../../src/store/duckdb/metadata-backup.ts';
import { checkStoreFile, inspectStoreFiles, openStore } from '../../src/store/open-store.ts';
import { NOW, testStoreOptions } from '../support/app.ts';
import { edgeRecord } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

// What a power cut leaves of the file, and how the next start recovers it. test/crash/ finds such states systematically.

const FIRST_BLOCK = 12_288;
const BLOCK_BYTES = 262_144;
const RECORDS = 100;

let directory: string;
let file: string;
beforeEach(async () => {
  directory = createDataDirectory();
  file = join(directory, 'dendro.duckdb');
  const store = await openStore(testStoreOptions(directory));
  const records = Array.from({ length: RECORDS }, (_, i) => edgeRecord({ id: `${i}`, at: NOW }));
  await store.apply({ ...toLogLines('edge', records), firstSequence: 0 });
  await store.flush(['edge']);
  await store.close();
});
afterEach(() => {
  vi.restoreAllMocks();
  removeDataDirectory(directory);
});

/** Works on the file like the store, and leaves its write-ahead log. */
async function withFileMutex(work: (connection: DuckDBConnection) => Promise<void>): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:', { checkpoint_threshold: '1TB' });
  const connection = await instance.connect();
  await connection.run('pragma disable_checkpoint_on_shutdown');
  await connection.run(`attach '${file}' as logs`);
  await work(connection);
  connection.closeSync();
  instance.closeSync();
}

async function countRecords(callbacks: Parameters<typeof openStore>[1] = {}): Promise<unknown> {
  const store = await openStore(testStoreOptions(directory), callbacks);
  try {
    return (await store.query(savedQuery('select count(*) from edge_logs', ['integer']), {})).rows[0]?.[0];
  } finally {
    await store.close();
  }
}

/** The comparison of large buffers by `expect` takes seconds. */
const digestOf = (path: string) => (statSync(path).isFile() ? crc32(readFileSync(path)) : undefined);

const readAt = async (offset: number, length: number) => readFileSync(file).subarray(offset, offset + length);

/** Tears the block with the metadata: its second half is lost. */
function tearMetadata(): void {
  const bytes = readFileSync(file);
  const [header = ''] = readFileSync(metadataBackupOf(file)).toString('latin1').slice(8).split('\n', 1);
  for (const block of (JSON.parse(header) as { blocks: number[] }).blocks)
    bytes.fill(0x55, FIRST_BLOCK + block * BLOCK_BYTES, FIRST_BLOCK + block * BLOCK_BYTES + BLOCK_BYTES / 2);
  writeFileSync(file, bytes);
}

test('if a power cut tears a metadata block during a checkpoint, the next start restores the block', async () => {
  await withFileMutex(connection => saveMetadata(connection, file, readAt));
  tearMetadata();
  expect(await countRecords()).toBe(RECORDS);
  expect(existsSync(metadataBackupOf(file))).toBe(false);
});

/** The checkpoint numbers in the file and in the saved metadata, which is undefined if there is none. */
function readCheckpoints(): { inFile: bigint; saved: bigint | undefined } {
  const headers = readFileSync(file).subarray(0, FIRST_BLOCK);
  const [first, second] = [headers.readBigUInt64LE(4096 + 8), headers.readBigUInt64LE(8192 + 8)];
  const backup = metadataBackupOf(file);
  const header = existsSync(backup) ? readFileSync(backup).toString('latin1').slice(8).split('\n', 1) : [];
  const saved = header.map(json => BigInt((JSON.parse(json) as { checkpoint: string }).checkpoint))[0];
  return { inFile: first > second ? first : second, saved };
}

test('every checkpoint of a store runs while its metadata is saved, and the saved metadata is removed after it', async () => {
  const store = await openStore(testStoreOptions(directory));
  const checkpoints: ReturnType<typeof readCheckpoints>[] = [];
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const prototype = Object.getPrototypeOf(connection) as DuckDBConnection;
  const { run } = prototype;
  vi.spyOn(prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...args) {
    if (/checkpoint/i.test(args[0])) checkpoints.push(readCheckpoints());
    return run.apply(this, args);
  });
  await store.apply({ ...toLogLines('auth', [edgeRecord({ id: 'new', at: NOW })]), firstSequence: 0 });
  await store.flush(['auth']);
  const after = readCheckpoints();
  expect(checkpoints.length).toBeGreaterThan(0);
  for (const { inFile, saved } of checkpoints) expect(saved).toBe(inFile);
  expect(after.inFile).toBeGreaterThan(checkpoints[0]?.inFile ?? after.inFile);
  expect(after.saved).toBeUndefined();
  connection.closeSync();
  instance.closeSync();
  await store.close();
});

/** From now on, no call of `write` writes more than 1000 bytes. */
async function writeInPieces(): Promise<void> {
  const handle = await open(file, 'r');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const write = prototype.write as (...args: unknown[]) => ReturnType<FileHandle['write']>;
  vi.spyOn(prototype, 'write').mockImplementation(function (
    this: FileHandle,
    data: unknown,
    from: unknown,
    length: unknown,
    position: unknown,
  ) {
    return write.call(this, data, from, Math.min(Number(length), 1000), position);
  } as FileHandle['write']);
}

test('metadata blocks are restored completely if the system writes fewer bytes than it is asked to', async () => {
  await withFileMutex(connection => saveMetadata(connection, file, readAt));
  tearMetadata();
  await writeInPieces();
  expect(await countRecords()).toBe(RECORDS);
});

test('metadata that was saved before a completed checkpoint is not restored', async () => {
  await withFileMutex(async connection => {
    await saveMetadata(connection, file, readAt);
    await connection.run("insert into logs.flushed_records values ('auth', 7)");
    await connection.run('checkpoint logs');
  });
  const store = await openStore(testStoreOptions(directory));
  expect(store.flushedUpTo('auth')).toBe(7);
  await store.close();
  expect(existsSync(metadataBackupOf(file))).toBe(false);
});

/** Leaves a commit in the write-ahead log, and the start of another one after it. Returns the path of the log. */
async function tearLog(tail: Buffer, kind = 'auth'): Promise<string> {
  const log = `${file}.wal`;
  await withFileMutex(async connection => {
    await connection.run(`insert into logs.flushed_records values ('${kind}', 7)`);
  });
  appendFileSync(log, tail);
  return log;
}

test('an unfinished write at the end of the write-ahead log is cut off and reported, and commits before it are kept', async () => {
  const log = await tearLog(Buffer.alloc(4096));
  const events: Event[] = [];
  expect(await countRecords({ observe: event => events.push(event) })).toBe(RECORDS);
  const expected = { path: log, reason: 'unfinished write', invalidBytes: 4096, copy: `${log}.damaged` };
  expect(events).toEqual([{ type: 'store_wal_truncated', ...expected }]);
  expect(readFileSync(`${log}.damaged`)).toEqual(Buffer.alloc(4096));
  const store = await openStore(testStoreOptions(directory));
  expect(store.flushedUpTo('auth')).toBe(7);
  await store.close();
});

test('the bytes of a second unfinished write do not replace those of the first', async () => {
  const tails = [Buffer.alloc(100), Buffer.alloc(200)];
  for (const [index, kind] of ['auth', 'realtime'].entries()) {
    await tearLog(tails[index] ?? Buffer.alloc(0), kind);
    await countRecords();
  }
  expect(['.damaged', '.damaged-2'].map(suffix => readFileSync(`${file}.wal${suffix}`))).toEqual(tails);
});

test('if an unfinished write cannot be copied, the start fails with what to do, and changes nothing', async () => {
  const log = await tearLog(Buffer.alloc(100));
  const before = readFileSync(log);
  mkdirSync(`${log}.damaged.new`); // the temporary file of the copy
  const error: unknown = await countRecords().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OperatorError);
  expect((error as Error).message).toMatch(/100 bytes from the end of \S+\.wal .*; free some disk space/);
  expect(readFileSync(log)).toEqual(before);
});

test('a write-ahead log without its file is moved away and reported, and the store starts empty', async () => {
  const log = await tearLog(Buffer.alloc(0));
  const content = readFileSync(log);
  await withFileMutex(connection => saveMetadata(connection, file, readAt));
  rmSync(file);
  const events: Event[] = [];
  expect(await countRecords({ observe: event => events.push(event) })).toBe(0);
  const copy = `${log}.damaged`;
  expect(events).toEqual([
    { type: 'store_wal_truncated', path: log, reason: 'no store file', invalidBytes: content.length, copy },
  ]);
  expect(readFileSync(copy)).toEqual(content);
  expect(existsSync(metadataBackupOf(file))).toBe(false);
});

const UNFINISHED: [state: string, leave: () => Promise<unknown>, damage: object][] = [
  [
    'an unfinished write',
    () => tearLog(Buffer.alloc(4096)),
    {
      file: 'dendro.duckdb.wal',
      place: expect.stringMatching(/^bytes \d+ to \d+$/),
      problem: 'an unfinished write; the next start of the server cuts it off',
    },
  ],
  [
    'an unfinished checkpoint',
    async () => {
      await withFileMutex(connection => saveMetadata(connection, file, readAt));
      tearMetadata();
    },
    {
      file: 'dendro.duckdb',
      place: '',
      problem:
        'an unfinished checkpoint; the next start of the server restores the metadata from dendro.duckdb.metadata-backup',
    },
  ],
];

test.each(UNFINISHED)(
  'the checks report %s as something that the next start repairs, and change nothing',
  async (_, leave, damage) => {
    await leave();
    const digests = () => readdirSync(directory).map(name => [name, digestOf(join(directory, name))]);
    const before = digests();
    const options = testStoreOptions(directory);
    expect(await checkStoreFile(options)).toEqual(damage);
    const { damages } = await inspectStoreFiles('duckdb', { ...options, onProgress: () => {} });
    expect(damages[0]).toEqual(damage);
    expect(digests()).toEqual(before);
    expect(await countRecords()).toBe(RECORDS);
    expect(await checkStoreFile(options)).toBeUndefined();
  },
);

test.each(UNFINISHED)('a backup of a directory with %s has all records', async (_, leave) => {
  await leave();
  const copy = createDataDirectory();
  try {
    await unpack(readDataFiles(directory, join(directory, 'tokens.json')), copy);
    const options = { store: 'duckdb', memoryLimit: '500MB' } as const;
    expect(await readBack(copy, options)).toEqual({ edge: { stored: RECORDS, spooled: 0 } });
  } finally {
    removeDataDirectory(copy);
  }
});

test('a store whose creation was interrupted is created again', async () => {
  removeDataDirectory(directory);
  directory = createDataDirectory();
  writeFileSync(join(directory, 'dendro.duckdb.new'), Buffer.alloc(4096));
  expect(await countRecords()).toBe(0);
  expect(existsSync(join(directory, 'dendro.duckdb.new'))).toBe(false);
});

test('a start that fails after DuckDB has opened the file does not run a checkpoint', async () => {
  await withFileMutex(async connection => {
    await connection.run('update logs.schema_version set version = 99');
  });
  const digests = () => [file, `${file}.wal`].map(digestOf);
  const before = digests();
  await expect(openStore(testStoreOptions(directory))).rejects.toThrow('newer version');
  expect(digests()).toEqual(before);
});

test('a file that cannot be opened is refused with its name and what to do', async () => {
  truncateSync(file, 5000);
  await expect(openStore(testStoreOptions(directory))).rejects.toThrow(
    `; keep a copy of ${file}, then restore the data directory from a backup`,
  );
});
