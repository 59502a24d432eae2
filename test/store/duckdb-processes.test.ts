import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { openStore } from '../../src/store/open-store.ts';
import { NOW, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { record } from '../support/record.ts';
import { batches } from '../support/store.ts';
import { runStoreProcess } from '../support/store-process.ts';

const dataDirectory = useDirectory();

test('a start that may not open a file for each part fails with one line, and works with a higher limit', async () => {
  const store = await openStore({ ...testStoreOptions(dataDirectory), maxPartBytes: 1 });
  await store.append(batches('auth', ...Array.from({ length: 40 }, () => [record({ at: NOW })])));
  await store.close();
  expect(await runStoreProcess('open', dataDirectory, 103)).toEqual({
    opened: false,
    name: 'OperatorError',
    message:
      'the store has 40 parts and needs 104 file descriptors, but this process may open only 103; raise the limit (ulimit -n, or LimitNOFILE of systemd)',
  });
  expect(await runStoreProcess('open', dataDirectory, 104)).toEqual({ opened: true });
});

// In processes of their own, because a close that fails might never return.
describe('closing the store', () => {
  test('close cancels a running query', async () => {
    expect(await runStoreProcess('close-while-running', dataDirectory)).toEqual({ running: 'unavailable' });
  });

  test('close rejects queries in the queue, and does not wait for their time limit', async () => {
    expect(await runStoreProcess('close-while-waiting', dataDirectory)).toEqual({ waiting: 'unavailable' });
  });
});

describe('the path of a data directory', () => {
  test('a data directory that is a file is rejected with one line', async () => {
    const file = join(dataDirectory, 'file');
    writeFileSync(file, '');
    const error = await openStore(testStoreOptions(file)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as OperatorError).message).toContain(file);
  });

  test.each(['a new data directory', 'one that a server has used', 'one with a manifest'])(
    'if `parts` is a file in %s, a start fails with one line',
    async state => {
      const directory = join(dataDirectory, state);
      const parts = join(directory, 'parts');
      if (state === 'one with a manifest') await (await openStore(testStoreOptions(directory))).close();
      else
        mkdirSync(state === 'a new data directory' ? directory : join(directory, 'spool'), {
          recursive: true,
        });
      rmSync(parts, { recursive: true, force: true });
      writeFileSync(parts, '');
      const error = await openStore(testStoreOptions(directory)).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(OperatorError);
      expect((error as OperatorError).message).toBe(
        `cannot use the data directory ${directory}: ENOTDIR: not a directory, stat '${parts}/'`,
      );
    },
  );

  test('a data directory can have quotes and spaces in its name', async () => {
    const store = await openStore(testStoreOptions(join(dataDirectory, `it's a "folder"; drop`)));
    await store.close();
  });
});
