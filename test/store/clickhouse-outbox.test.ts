import { copyFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Outbox } from '../../src/store/clickhouse/outbox.ts';
import { useDirectory } from '../support/hooks.ts';
import { record } from '../support/record.ts';

const directory = useDirectory();

test('files with records that a crash left in the outbox are deleted at the next start', async () => {
  const [file, copy, unfinished] = ['auth.block', 'copy', 'auth.block.new'].map(name =>
    join(directory, name),
  );
  const records = [record({ at: '2026-11-14T12:00:00Z' })];
  const outbox = await Outbox.open(directory);
  const block = await outbox.add({ ...toLogLines('auth', records), firstSequence: 0 });
  copyFileSync(`${file}`, `${copy}`);
  expect((await Outbox.open(directory)).pending('auth')).toEqual(block);
  await outbox.acknowledge(block);
  copyFileSync(`${copy}`, `${file}`); // as if the process had been killed before it deleted the file
  writeFileSync(`${unfinished}`, 'a part of a block');
  expect((await Outbox.open(directory)).pending('auth')).toBeUndefined();
  expect([file, unfinished].map(name => existsSync(`${name}`))).toEqual([false, false]);
});
