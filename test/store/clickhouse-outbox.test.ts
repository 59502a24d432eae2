import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { Event } from '../../src/observe/event.ts';
import { Outbox } from '../../src/store/clickhouse/outbox.ts';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/config.ts';
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

describe('a start', () => {
  const file = (name: string) => join(directory, 'clickhouse', name);
  /** Returns the reports. */
  const open = async () => {
    const events: Event[] = [];
    const clickhouse = parseClickHouseUrl('clickhouse://u:p@127.0.0.1:1/d', '--store'); // nothing listens there
    const observe = (event: Event) => void events.push(event);
    await (await openStore({ ...testStoreOptions(directory), clickhouse }, { observe })).close();
    return events.map(({ type }) => type);
  };

  test.each<[string, string, (bytes: Buffer) => Uint8Array]>([
    ['progress.json', 'JSON', bytes => bytes.subarray(0, 10)],
    ['progress.json', 'spool or settled is missing', () => Buffer.from('{"spool":"a"}')],
    ['auth.block', 'JSON', bytes => bytes.subarray(5)],
    ['auth.block', 'unexpected end of file', bytes => bytes.subarray(0, -20)],
    [
      'auth.block',
      'it has 1 records instead of 2',
      bytes => Buffer.from(bytes.toString('latin1').replace('"count":1', '"count":2'), 'latin1'),
    ],
  ])('stops if %s is damaged, and names it: %s', async (name, problem, damage) => {
    const outbox = await Outbox.open(file('.'));
    await outbox.add({ ...toLogLines('auth', [record({ at: '2026-11-14T12:00:00Z' })]), firstSequence: 0 });
    expect(await open()).toEqual([]);
    writeFileSync(file(name), damage(readFileSync(file(name))));
    await expect(open()).rejects.toThrow(`${file(name)} is damaged: `);
    await expect(open()).rejects.toThrow(problem);
    await expect(open()).rejects.toThrow('Restore it from a backup. If you delete it instead, ');
    rmSync(file(name));
    expect(await open()).toEqual([]);
  });

  test('stops if a server has used the directory and progress.json is missing, and reports it if the whole outbox is', async () => {
    expect(await open()).toEqual([]);
    mkdirSync(join(directory, 'spool')); // as a server does
    rmSync(file('progress.json'));
    await expect(open()).rejects.toThrow(`${file('progress.json')} is missing`);
    rmSync(file('.'), { recursive: true });
    expect(await open()).toEqual(['store_missing']);
    expect(await open()).toEqual([]);
    rmSync(file('.'), { recursive: true });
    writeFileSync(join(directory, 'manifest.json'), ''); // of a server with the embedded store
    expect(await open()).toEqual([]);
  });
});
