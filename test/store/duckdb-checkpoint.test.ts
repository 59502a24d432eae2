import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Checkpointer } from '../../src/store/duckdb/checkpoint.ts';
import { type DuckDBConnection, DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';

let dataDirectory: string;
let instance: DuckDBInstance;
let connections: DuckDBConnection[];
let checkpointer: Checkpointer;
let calls: string[];
let hasDiskSpace: boolean;

const connect = async () => {
  const connection = await instance.connect();
  connections.push(connection);
  return connection;
};

beforeEach(async () => {
  dataDirectory = createDataDirectory();
  instance = await DuckDBInstance.create(':memory:');
  connections = [];
  calls = [];
  hasDiskSpace = true;
  const connection = await connect();
  await connection.run(`attach '${join(dataDirectory, 'dendro.duckdb')}' as logs`);
  await connection.run('create table logs.records (id integer)');
  const record = (name: string) => async () => {
    calls.push(name);
  };
  checkpointer = new Checkpointer({
    connection,
    hasDiskSpace: async () => hasDiskSpace,
    syncDirectory: async () => {},
    saveMetadata: record('save'),
    removeMetadataBackup: record('remove'),
  });
});
afterEach(() => {
  for (const connection of connections) connection.closeSync();
  instance.closeSync();
  removeDataDirectory(dataDirectory);
});

test('while another transaction writes, checkpoints are rejected and the metadata are saved only once', async () => {
  const writer = await connect();
  await writer.run('begin transaction');
  await writer.run('create table logs.other (id integer)');
  expect(await checkpointer.run()).toBe(false);
  expect(await checkpointer.run()).toBe(false);
  expect(calls).toEqual(['save']);
  await writer.run('commit');
  expect(await checkpointer.run()).toBe(true);
  expect(calls).toEqual(['save', 'remove']);
});

test('each checkpoint saves the metadata of the one before it', async () => {
  for (let run = 0; run < 2; run++) expect(await checkpointer.run()).toBe(true);
  expect(calls).toEqual(['save', 'remove', 'save', 'remove']);
});

const HOUR_MS = 3_600_000;

test('a checkpoint that must run waits until the other transactions have ended', async () => {
  const writer = await connect();
  await writer.run('begin transaction');
  await writer.run('create table logs.other (id integer)');
  const attempts: string[] = [];
  const isDone = checkpointer.runWhenIdle(work => {
    attempts.push('attempt');
    return work();
  }, HOUR_MS);
  await expect.poll(() => attempts.length).toBe(2);
  await writer.run('commit');
  await isDone;
  expect(calls).toEqual(['save', 'remove']);
});

test('a checkpoint that must run fails after its time, with the reason', async () => {
  const writer = await connect();
  await writer.run('begin transaction');
  await writer.run('create table logs.other (id integer)');
  const running = checkpointer.runWhenIdle(work => work(), 0);
  await expect(running).rejects.toThrow('cannot write a checkpoint now: another transaction is running');
});

test('a checkpoint that must run fails at once on a full disk, because waiting would not help', async () => {
  hasDiskSpace = false;
  const running = checkpointer.runWhenIdle(work => work(), HOUR_MS);
  await expect(running).rejects.toThrow('cannot write a checkpoint now: the disk is nearly full');
  expect(calls).toEqual([]);
});
