// Backups are tar archives: the tar programs of several projects extract what src/system/tar.ts writes.
import { execFileSync } from 'node:child_process';
import { createWriteStream, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { bufferFile, writeTar } from '../../src/system/tar.ts';
import { createTempDirectory } from '../support/process.ts';

const CONTENTS = { empty: '', 'spool/one.spool': 'x'.repeat(511), 'tokens.json': '{}\n' };

let directory: ReturnType<typeof createTempDirectory>;
beforeAll(async () => {
  const missing = ensurePrograms({ busybox: 'busybox', bsdtar: 'libarchive-tools' });
  expect(missing, 'missing programs that this test needs').toEqual([]);
  directory = createTempDirectory();
  const files = Object.entries(CONTENTS).map(([path, content]) => bufferFile(path, content));
  await pipeline(writeTar(files, 1_700_000_000), createWriteStream(join(directory.path, 'backup.tar')));
});
afterAll(() => directory?.remove());

test.each(['tar', 'busybox tar', 'bsdtar'])(
  '%s extracts all files of a backup, also an empty one',
  command => {
    const [program = '', ...args] = command.split(' ');
    const target = join(directory.path, command);
    mkdirSync(target);
    execFileSync(program, [...args, '-xf', '../backup.tar'], { cwd: target });
    const paths = readdirSync(target, { recursive: true, encoding: 'utf8' });
    const files = paths.filter(path => statSync(join(target, path)).isFile());
    const contents = files.map(path => [path, readFileSync(join(target, path), 'utf8')]);
    expect(Object.fromEntries(contents)).toEqual(CONTENTS);
  },
);
