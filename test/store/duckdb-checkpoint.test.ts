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
  const connection = await connect();
  await connection.run(`attach '${join(dataDirectory, 'dendro.duckdb')}' as logs`);
  await connection.run('create table logs.records (id integer)');
  const record = (name: string) => async () => {
    calls.push(name);
  };
  checkpointer = new Checkpointer({
    connection,
    hasDiskSpace: async () => true,
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
