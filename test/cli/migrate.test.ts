import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { onlyLine, runDendro } from '../support/process.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';

let dataDirectory: string;
beforeEach(() => {
  dataDirectory = createDataDirectory();
});
afterEach(() => removeDataDirectory(dataDirectory));

const openSource = () => openStore(testStoreOptions(dataDirectory));

test('dendro migrate closes the embedded store if the ClickHouse store cannot be opened', async () => {
  await (await openSource()).close();
  writeFileSync(join(dataDirectory, 'migration-dendro'), 'a file in place of the directory for the progress');
  const args = ['migrate', '--from', `duckdb:${dataDirectory}`, '--to', 'clickhouse://127.0.0.1:1/dendro'];
  expect(onlyLine(await runDendro(args))).toContain('migration-dendro');
  await (await openSource()).close(); // throws if the data directory is still locked
});
