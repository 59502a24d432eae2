// The core acceptance set on x64. On an x64 machine it runs natively; on arm64, QEMU runs Node and the program for x64.
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { installNode } from '../../scripts/install-node.mjs';
import { runNpm } from '../../scripts/npm.mjs';
import { createTempDirectory } from '../support/process.ts';
import { checkCoreAcceptance } from './core-acceptance.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODE_20 = '20.20.2';

let directory: ReturnType<typeof createTempDirectory>;
let command: [string, ...string[]];

beforeAll(() => {
  directory = createTempDirectory();
  const node = installNode('x64', NODE_20);
  const app = join(directory.path, 'app');
  for (const name of ['bin', 'dist', 'endpoints', 'packs', 'package.json', 'package-lock.json'])
    cpSync(join(ROOT, name), join(app, name), { recursive: true });
  const platform = ['--cpu=x64', '--os=linux', '--libc=glibc'];
  runNpm(['ci', '--omit=dev', '--ignore-scripts', ...platform], app);
  command = [...emulator(), node, join(app, 'bin', 'dendro')];
});
afterAll(() => directory?.remove());

/** The program that runs x64 programs; none on x64. Installs it, and the libraries for x64, from Debian packages. */
function emulator(): [] | [string] {
  if (process.arch === 'x64') return [];
  const missing = ensurePrograms({ 'qemu-x86_64-static': 'qemu-user-static' });
  expect(missing, 'missing programs that this test needs').toEqual([]);
  if (process.getuid?.() === 0) execFileSync('dpkg', ['--add-architecture', 'amd64']);
  const libraries = {
    '/lib64/ld-linux-x86-64.so.2': 'libc6:amd64',
    '/usr/lib/x86_64-linux-gnu/libstdc++.so.6': 'libstdc++6:amd64',
  };
  expect(ensurePrograms(libraries, { update: true }), 'missing libraries that this test needs').toEqual([]);
  return ['qemu-x86_64-static'];
}

test('the program for x64 passes the core acceptance set', { timeout: 900_000 }, async () => {
  const [program, ...args] = command;
  const architecture = execFileSync(program, [...args.slice(0, -1), '-p', 'process.arch'], {
    encoding: 'utf8',
  });
  expect(architecture.trim()).toBe('x64');
  await checkCoreAcceptance(join(directory.path, 'data'), { command });
});
