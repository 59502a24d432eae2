import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createTempDirectory, onlyLine, PROCESS_API_KEY, runDendro } from '../support/process.ts';

const env = { DENDRO_API_KEY: PROCESS_API_KEY };
const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

let directory: ReturnType<typeof createTempDirectory>;
beforeEach(() => {
  directory = createTempDirectory();
});
afterEach(() => directory.remove());

const serve = (...args: string[]) =>
  runDendro(['serve', '--data', directory.path, '--port', '0', '--internal-port', '0', ...args], { env });

test('one that does not exist: erase and backup do not create it, and query says so', async () => {
  const missing = join(directory.path, 'missing');
  for (const args of [
    ['erase', '--project', 'a', '--yes'],
    ['backup', join(directory.path, 'copy')],
  ]) {
    const outcome = await runDendro([...args, '--data', missing]);
    expect([outcome.code, onlyLine(outcome)]).toEqual([
      1,
      `dendro: there is no data directory ${missing}; name it with --data, or a server with --url`,
    ]);
  }
  expect(readdirSync(directory.path)).toEqual([]);
  expect(await runDendro(['query', 'logs.all', '--project', 'a', '--data', missing])).toEqual({
    ...{ code: 0, stdout: 'no rows\n' },
    stderr: `dendro: ${missing} does not exist; it is created, and has no records\n`,
  });
});

test.runIf(existsSync('/proc'))(
  'check refuses a directory that serve cannot create, also as root',
  async () => {
    const outcome = await runDendro(['check', '--data', '/proc/dendro']);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain('cannot create the data directory /proc/dendro: ');
  },
);

describe('a data directory that this user cannot use', () => {
  test.runIf(isRoot)('belongs to another user: one line with both users and the fix, exit 1', async () => {
    expect((await runDendro(['query', 'logs.all', '--project', 'a', '--data', directory.path])).code).toBe(0);
    for (const name of ['', ...readdirSync(directory.path)])
      chownSync(join(directory.path, name), NOBODY, NOBODY);
    const before = readdirSync(directory.path);
    const outcome = await serve();
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toMatch(
      new RegExp(
        `^dendro: the data directory ${directory.path} belongs to user \\S+ \\(uid 65534\\), but this process runs as user root \\(uid 0\\); run it as the owner: sudo -u '#65534' dendro …$`,
      ),
    );
    expect(readdirSync(directory.path)).toEqual(before);
  });

  test.runIf(!isRoot)('is not writable: one line with the path, the user and the fix, exit 1', async () => {
    chmodSync(directory.path, 0o500);
    const outcome = await serve();
    chmodSync(directory.path, 0o700);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(`cannot write to the data directory ${directory.path}`);
  });

  describe.runIf(isRoot)('as the user nobody', () => {
    const prepare = (path: string) =>
      execFileSync(
        process.execPath,
        [join(import.meta.dirname, '../support/run-as-nobody.mjs'), path, String(NOBODY)],
        { encoding: 'utf8' },
      );
    beforeEach(() => chmodSync(directory.path, 0o755));

    test('is not writable: the message has the path, the user, the owner and the fix', () => {
      expect(prepare(directory.path)).toMatch(
        new RegExp(
          `^user \\S+ \\(uid 65534\\) cannot write to the data directory ${directory.path}, which belongs to user root \\(uid 0\\): EACCES: permission denied; as root, run: chown 65534 ${directory.path}; or choose another directory with --data$`,
        ),
      );
    });

    test('cannot be created: the message has the command that creates it', () => {
      const missing = join(directory.path, 'missing');
      expect(prepare(missing)).toContain(
        `EACCES: permission denied; as root, run: install -d -o 65534 ${missing}; or`,
      );
    });

    test('contains a store of another user, although the directory is writable', () => {
      mkdirSync(join(directory.path, 'spool'));
      chmodSync(directory.path, 0o777);
      expect(prepare(directory.path)).toContain(
        'belongs to user root (uid 0), but this process runs as user',
      );
    });

    test('belongs to this user, but its files to another: the message names both and the fix', () => {
      mkdirSync(join(directory.path, 'spool'));
      chownSync(directory.path, NOBODY, NOBODY);
      expect(prepare(directory.path)).toMatch(
        new RegExp(
          `^the files in the data directory ${directory.path} belong to user root \\(uid 0\\), but this process runs as user \\S+ \\(uid 65534\\); while no server uses it, run as root: chown -R 65534 ${directory.path}$`,
        ),
      );
    });

    test('is usable if it is writable and empty, even if root owns it, like a volume of a container', () => {
      chmodSync(directory.path, 0o777);
      expect(prepare(directory.path)).toBe('usable');
    });
  });
});

describe('a data directory of a newer version', () => {
  const newer = '{"format":3,"version":"9.1.0"}\n';

  test.each(['duckdb', 'clickhouse://u:p@127.0.0.1:1/d'])(
    'is refused with store %s: one line that names the newer version, exit 1, and no file is changed',
    async store => {
      const file = join(directory.path, 'format.json');
      writeFileSync(file, newer);
      const outcome = await serve('--store', store);
      expect(outcome.code).toBe(1);
      expect(onlyLine(outcome)).toMatch(
        /was written by Dendro 9\.1\.0 in format 3; this is Dendro \S+, which reads formats up to 2; install 9\.1\.0 or later, or restore a backup/,
      );
      expect(readdirSync(directory.path)).toEqual(['format.json']);
      expect(readFileSync(file, 'utf8')).toBe(newer);
    },
  );

  test('is opened if its format is the same, and the file then names this version', async () => {
    const file = join(directory.path, 'format.json');
    writeFileSync(file, newer.replace('3', '2'));
    expect((await runDendro(['query', 'logs.all', '--project', 'a', '--data', directory.path])).code).toBe(0);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      format: 2,
      version: expect.not.stringContaining('9.1.0'),
    });
  });

  test('is refused if its format file cannot be parsed: one line that names the file, exit 1', async () => {
    const file = join(directory.path, 'format.json');
    writeFileSync(file, '{');
    const outcome = await serve();
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(file);
  });
});
