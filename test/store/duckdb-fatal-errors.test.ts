import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DuckDBConnection, DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { watchFatalErrors } from '../../src/store/duckdb/fatal-errors.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';

describe('an error after which DuckDB has invalidated its file', () => {
  let directory: string;
  let instance: DuckDBInstance;
  let connection: DuckDBConnection;
  let errors: string[];
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'dendro-fatal-'));
    instance = await DuckDBInstance.create(join(directory, 'file.duckdb'));
    errors = [];
    connection = watchFatalErrors(await instance.connect(), error => errors.push((error as Error).message));
  });
  afterEach(() => {
    instance.closeSync();
    rmSync(directory, { recursive: true, force: true });
  });

  /** DuckDB's own debug setting: the next checkpoint fails as on a broken disk. */
  const breakFile = async () => {
    await connection.run("set debug_checkpoint_abort = 'before_header'");
    await connection.run('create table t as select 1 as i');
    await connection.run('checkpoint');
  };
  const unavailable = { name: 'DendroError', code: 'unavailable' };

  test('is reported and thrown as "unavailable" by every way to run a statement', async () => {
    const before = await connection.prepare('select 1');
    await expect(breakFile()).rejects.toMatchObject(unavailable);
    expect(errors).toEqual([expect.stringMatching(/^FATAL Error/)]);
    const attempts = [
      () => connection.run('select 1'),
      () => connection.runAndReadAll('select 1'),
      () => connection.streamAndReadUntil('select 1', 1),
      async () => (await connection.prepare('select 1')).run(),
      () => before.run(),
      () => before.runAndReadAll(),
      () => before.streamAndReadUntil(1),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject(unavailable);
    expect(errors).toHaveLength(1 + attempts.length);
    for (const message of errors.slice(1)) expect(message).toContain('database has been invalidated');
  });

  test('is not confused with other errors', async () => {
    await expect(connection.run('select no_column')).rejects.toThrow(/^Binder Error/);
    await expect(connection.prepare('select')).rejects.toThrow(/^Parser Error/);
    expect(errors).toEqual([]);
  });
});

test('an invalid pattern of a client that quotes a fatal error does not count as one', async () => {
  const dataDirectory = createDataDirectory();
  const errors: unknown[] = [];
  const store = await openStore(testStoreOptions(dataDirectory), {
    storeInvalidated: error => errors.push(error),
  });
  try {
    for (const pattern of ['(database has been invalidated', 'FATAL Error: invalidated)', '[FATAL Error'])
      expect(await store.validatePattern(pattern)).not.toBeUndefined();
    expect(await store.validatePattern('valid')).toBeUndefined();
    expect(errors).toEqual([]);
  } finally {
    await store.close();
    removeDataDirectory(dataDirectory);
  }
});
