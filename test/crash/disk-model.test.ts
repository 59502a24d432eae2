import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';
import { CRASH_MODES, type CrashMode, chooseCrashState } from './crash-state.ts';
import { DiskModel, writeState } from './disk-model.ts';
import type { Operation } from './operation-log.ts';

const ROOT = '/disk';
const path = (name: string) => join(ROOT, name);

let target: string;
let model: DiskModel;
beforeEach(() => {
  target = createDataDirectory();
  model = new DiskModel({ root: ROOT, files: [] });
});
afterEach(() => removeDataDirectory(target));

const create = (name: string, inode: number): Operation => ({ type: 'create', path: path(name), inode });
const write = (inode: number, text: string, offset = 0): Operation => ({
  ...{ type: 'write', inode, offset, data: Buffer.from(text) },
});
const sync = (inode: number): Operation => ({ type: 'sync', inode, path: '' });
const syncRoot: Operation = { type: 'sync directory', path: ROOT };

/** The files after a power cut, with their content. */
function crash(mode: CrashMode, seed = 1): Record<string, string> {
  const { entries, contentOf } = chooseCrashState(model, mode, new Random(seed));
  const files = [...entries].flatMap(([name, entry]) =>
    entry === 'directory' ? [] : [[name.slice(ROOT.length + 1), contentOf(entry).toString('latin1')]],
  );
  return Object.fromEntries(files);
}

test('a state is written without the files of a directory that did not survive', () => {
  const mkdir: Operation = { type: 'mkdir', path: path('lost') };
  const inside: Operation = { type: 'sync directory', path: path('lost') };
  for (const operation of [
    create('a', 1),
    write(1, 'text'),
    sync(1),
    syncRoot,
    mkdir,
    create('lost/b', 2),
    inside,
  ])
    model.apply(operation);
  writeState(ROOT, chooseCrashState(model, 'lost', new Random(1)), target);
  expect(readdirSync(target, { recursive: true })).toEqual(['a']);
  expect(readFileSync(join(target, 'a'), 'utf8')).toBe('text');
});

test('what was synced survives in every mode: data by the fsync of the file, the name by that of the directory', () => {
  for (const operation of [create('a', 1), write(1, 'text'), sync(1), syncRoot]) model.apply(operation);
  for (const mode of CRASH_MODES) expect(crash(mode)).toEqual({ a: 'text' });
});

test('a file whose directory was not synced is lost, also if its data was synced', () => {
  for (const operation of [create('a', 1), write(1, 'text'), sync(1)]) model.apply(operation);
  expect(crash('lost')).toEqual({});
  expect(crash('kept')).toEqual({ a: 'text' });
});

test('a rename can survive without the data that was written before it', () => {
  const rename: Operation = { type: 'rename', path: path('a.new'), to: path('a') };
  for (const operation of [create('a.new', 1), write(1, 'text'), rename]) model.apply(operation);
  expect(crash('entries')).toEqual({ a: '' });
});

test('after a rename that may be lost, the name has the old or the new file', () => {
  const rename: Operation = { type: 'rename', path: path('b'), to: path('a') };
  const old = [create('a', 1), write(1, 'old'), sync(1), create('b', 2), write(2, 'new'), sync(2), syncRoot];
  for (const operation of [...old, rename]) model.apply(operation);
  const found = new Set(Array.from({ length: 20 }, (_, seed) => JSON.stringify(crash('any', seed))));
  expect(found).toEqual(new Set(['{"a":"old","b":"new"}', '{"a":"new"}']));
});

test('writes can be torn at the borders of sectors and be reordered, and lost sectors of a longer file are zero', () => {
  for (const operation of [
    create('a', 1),
    syncRoot,
    write(1, 'x'.repeat(1024)),
    write(1, 'y'.repeat(512), 1024),
  ])
    model.apply(operation);
  const contents = Array.from({ length: 200 }, (_, seed) => crash('any', seed)['a'] ?? '');
  const sectors = contents.map(content =>
    content
      .match(/.{512}/gs)
      ?.map(sector => sector[0] ?? '')
      .join(''),
  );
  for (const expected of ['xxy', '\0xy', 'x', '\0\0y', '\0\0'] as const) expect(sectors).toContain(expected);
  for (const content of contents) expect(content.length % 512).toBe(0);
});

test('the same seed chooses the same state', () => {
  for (const operation of [create('a', 1), write(1, 'x'.repeat(9000))]) model.apply(operation);
  const keyOf = (seed: number) => chooseCrashState(model, 'any', new Random(seed)).key;
  expect(keyOf(3)).toBe(keyOf(3));
});
