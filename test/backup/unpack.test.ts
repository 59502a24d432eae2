import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { unpack } from '../../src/backup/unpack.ts';
import { bufferFile } from '../../src/system/tar.ts';

describe('unpacking', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'dendro-unpack-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  test.each([
    '../outside',
    '/absolute',
    'a/../../outside',
    '.',
    '..',
    'a/b/c',
    '.hidden',
    'a//b',
    'a\\..\\b',
    '',
  ])('a backup with the path %j is not unpacked', async path => {
    const target = join(directory, 'target');
    await expect(unpack([bufferFile(path, 'content')], target)).rejects.toThrow('not a valid path');
  });

  test('a backup with the same path twice is not unpacked', async () => {
    const files = [bufferFile('file', 'one'), bufferFile('file', 'two')];
    await expect(unpack(files, join(directory, 'target'))).rejects.toThrow('EEXIST');
  });
});
