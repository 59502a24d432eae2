import { expect, test } from 'vitest';
import type { Checkpointer } from '../../src/store/duckdb/checkpoint.ts';
import { deleteBefore } from '../../src/store/duckdb/delete-expired.ts';
import { openDatabase } from '../../src/store/duckdb/open-database.ts';
import { nameOf, Parts } from '../../src/store/duckdb/parts.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';

test('if the records of one kind cannot be deleted, the expired records of the others are', async () => {
  const dataDirectory = createDataDirectory();
  const database = await openDatabase({ dataDirectory, memoryLimit: '100MB' });
  const connection = await database.connectWriter();
  const parts = await Parts.open(connection, () => database.syncDirectory());
  const [edge, auth] = [parts.list('edge')[0], parts.list('auth')[0]];
  if (edge === undefined || auth === undefined) throw new Error('a kind has no part');
  const values = "('old', '', '', '{}', '2020-01-01'), ('new', '', '', '{}', '2030-01-01')";
  await connection.run(
    `insert into ${nameOf(auth)} (id, project, event_message, metadata, timestamp) values ${values}`,
  );
  await connection.run(`drop table ${nameOf(edge)}`);
  const checkpointer = { run: async () => true } as unknown as Checkpointer;
  await expect(deleteBefore(connection, parts, checkpointer, 1_750_000_000_000_000n)).rejects.toThrow('edge');
  const left = await connection.runAndReadAll(`select count(*) from ${nameOf(auth)}`);
  expect(left.value(0, 0)).toBe(1n);
  connection.closeSync();
  database.close();
  removeDataDirectory(dataDirectory);
});
