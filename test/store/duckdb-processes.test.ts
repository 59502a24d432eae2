import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';
import { runStoreProcess, startStoreProcess } from '../support/store-process.ts';

let dataDirectory: string;
beforeEach(() => {
  dataDirectory = createDataDirectory();
});
afterEach(() => removeDataDirectory(dataDirectory));

const open = () => openStore(testStoreOptions(dataDirectory));
/** The error of opening the store. */
const openError = () =>
  open().then(
    async store => {
      await store.close();
      throw new Error('it was opened');
    },
    (error: unknown) => error,
  );

describe('a data directory in use by another process', () => {
  test('a data directory in use is rejected with one line that names the directory and the process', async () => {
    const holder = startStoreProcess('hold', dataDirectory);
    try {
      expect(await holder.output).toEqual({ opened: true });
      const error = await openError();
      expect(error).toBeInstanceOf(OperatorError);
      const { message } = error as OperatorError;
      expect(message).toContain(
        `the data directory ${dataDirectory} is in use by another process (PID ${holder.pid})`,
      );
      expect(message).not.toContain('\n');
    } finally {
      await holder.kill();
    }
  });

  test('a process can use its data directory after another one was rejected', async () => {
    const store = await open();
    try {
      expect(await runStoreProcess('open', dataDirectory)).toMatchObject({
        opened: false,
        name: 'OperatorError',
        message: expect.stringContaining(`(PID ${process.pid})`),
      });
      expect((await store.query(savedQuery('select 42', ['integer']), {})).rows).toEqual([[42]]);
    } finally {
      await store.close();
    }
  });

  test('a data directory can be opened as soon as its process was killed', async () => {
    const holder = startStoreProcess('hold', dataDirectory);
    expect(await holder.output).toEqual({ opened: true });
    await holder.kill();
    const store = await open();
    await store.close();
  });
});

test('a record whose append resolved survives kill -9', async () => {
  const writer = startStoreProcess('append', dataDirectory);
  try {
    expect(await writer.output).toEqual({ appended: true });
  } finally {
    await writer.kill();
  }
  const store = await open();
  try {
    const { rows } = await store.query(savedQuery('select id, event_message from auth_logs'), {});
    expect(rows).toEqual([['kept', 'written before the kill']]);
  } finally {
    await store.close();
  }
});

// In processes of their own, because a close that fails might never return.
describe('closing the store', () => {
  test('close cancels a running query', async () => {
    expect(await runStoreProcess('close-while-running', dataDirectory)).toEqual({ running: 'unavailable' });
  });

  test('close right after the start of a query cancels it, and does not wait for its time limit', async () => {
    expect(await runStoreProcess('close-right-after-a-call', dataDirectory)).toEqual({
      running: 'unavailable',
    });
  });

  test('close rejects queries in the queue, and does not wait for their time limit', async () => {
    expect(await runStoreProcess('close-while-waiting', dataDirectory)).toEqual({ waiting: 'unavailable' });
  });
});

describe('opening a file of another program or version', () => {
  const writeDatabase = async (...statements: string[]) => {
    const instance = await DuckDBInstance.create(join(dataDirectory, 'dendro.duckdb'));
    const connection = await instance.connect();
    const rows: unknown[][] = [];
    for (const statement of statements) rows.push(...(await connection.runAndReadAll(statement)).getRows());
    connection.closeSync();
    instance.closeSync();
    return rows;
  };

  test('a newer schema version is rejected with one line, and the file is unchanged', async () => {
    await writeDatabase(
      'create table schema_version (version integer)',
      'insert into schema_version values (5)',
    );
    const error = await openError();
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as OperatorError).message).toMatch(/schema version 5.*at most 4.*newer/);
    expect((error as OperatorError).message).not.toContain('\n');
    expect(await writeDatabase('select table_name from duckdb_tables()')).toEqual([['schema_version']]);
  });

  test('the current schema version is accepted, and stored once', async () => {
    await (await open()).close();
    await (await open()).close();
    expect(await writeDatabase('select version from schema_version')).toEqual([[4]]);
  });

  test('a file that is not a database is rejected with one line', async () => {
    writeFileSync(
      join(dataDirectory, 'dendro.duckdb'),
      'this is not a database, but it is long enough\n'.repeat(1000),
    );
    const error = await openError();
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as OperatorError).message).toContain(dataDirectory);
    expect((error as OperatorError).message).not.toContain('\n');
  });

  test('a data directory that is a file is rejected with one line', async () => {
    const file = join(dataDirectory, 'file');
    writeFileSync(file, '');
    const error = await openStore(testStoreOptions(file)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as OperatorError).message).toContain(file);
  });

  test('a data directory can have quotes and spaces in its name', async () => {
    const store = await openStore(testStoreOptions(join(dataDirectory, `it's a "folder"; drop`)));
    await store.close();
  });
});
