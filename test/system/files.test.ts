import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { changeTokenFile, readTokenFile } from '../../src/token/token-file.ts';
import { storedToken } from '../support/tokens.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dendro-files-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Runs `dendro token create` in a process whose files can have at most 4 KiB. The system cuts the write that crosses the limit. */
function createTokenWithSmallFiles(file: string) {
  const program = join(import.meta.dirname, '../../bin/dendro');
  const command = `trap '' XFSZ; ulimit -f 8; exec "$0" "$@"`;
  const args = ['token', 'create', '--name', 'one-more', '--scope', 'query', '--tokens', file];
  return spawnSync('sh', ['-c', command, process.execPath, program, ...args], { encoding: 'utf8' });
}

test('a file that could be written only in part keeps its old content, and the command fails', async () => {
  const file = join(directory, 'tokens.json');
  const names = Array.from({ length: 30 }, (_, index) => `token-${index}`);
  await changeTokenFile(file, () => names.map(name => storedToken(name, name)));
  const before = readFileSync(file, 'utf8');
  expect(before.length).toBeGreaterThan(4096);
  const { status, stdout, stderr } = createTokenWithSmallFiles(file);
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: '',
    stderr: `dendro: cannot change the tokens file ${file}: EFBIG: file too large\n`,
  });
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(readTokenFile(file)).toHaveLength(30);
  expect(readdirSync(directory)).toEqual(['tokens.json']);
});
