import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { writeFileDurably } from '../../src/system/files.ts';
import { createSecret } from '../../src/token/token.ts';
import { changeTokenFile, readTokenFile, type StoredToken } from '../../src/token/token-file.ts';
import { useDirectory } from '../support/hooks.ts';
import { storedToken } from '../support/tokens.ts';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

/** Root may read every file. */
async function asNobody(work: () => unknown): Promise<void> {
  process.setegid?.(NOBODY);
  process.seteuid?.(NOBODY);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
}

describe('the tokens file', () => {
  const directory = useDirectory();
  const file = join(directory, 'tokens.json');

  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  const add = (token: StoredToken) => changeTokenFile(file, tokens => [...tokens, token]);
  const full = storedToken('full', 'secret', {
    scopes: ['query:logs.all', 'ingest:edge', 'metrics'],
    projects: ['alpha', 'beta'],
    expires_at: '2026-11-14T12:34:56.789012Z',
    rate: 0.5,
    tier: 'PRO',
    redact_pii: true,
  });

  test('returns every field as it was written, never a secret, and no tokens if it does not exist', async () => {
    expect(readTokenFile(file)).toEqual([]);
    const secret = createSecret();
    const plain = storedToken('plain', secret);
    await add(full);
    await add(plain);
    expect(readTokenFile(file)).toEqual([full, plain]);
    const text = readFileSync(file, 'utf8');
    expect(text).toContain(plain.sha256);
    expect(text).not.toContain(secret.slice(4, 20));
  });

  test.each([0, 0o077])(
    'is created with mode 0600 and keeps its mode when it is changed, with the umask %i',
    async mask => {
      const before = process.umask(mask);
      onTestFinished(() => void process.umask(before));
      await add(full);
      expect(modeOf(file)).toBe('600');
      chmodSync(file, 0o640);
      await add(storedToken('another', 'other'));
      expect(modeOf(file)).toBe('640');
    },
  );

  test.runIf(isRoot)('keeps its owner and group when root changes it', async () => {
    await add(full);
    chownSync(file, NOBODY, NOBODY);
    await add(storedToken('another', 'other'));
    expect(statSync(file)).toMatchObject({ uid: NOBODY, gid: NOBODY });
    expect(modeOf(file)).toBe('600');
  });

  test.runIf(isRoot)('gets the owner of its directory when root creates it', async () => {
    chownSync(directory, NOBODY, NOBODY);
    await add(full);
    expect(statSync(file)).toMatchObject({ uid: NOBODY, gid: NOBODY });
  });

  test.runIf(isRoot)('is not replaced by a user who cannot keep its owner', async () => {
    await add(full);
    chmodSync(file, 0o644);
    chmodSync(directory, 0o777);
    await asNobody(() =>
      expect(add(storedToken('another', 'other'))).rejects.toThrow(
        /^cannot change the tokens file .*: EPERM: operation not permitted for user \S+ \(uid 65534\); \S+ belongs to user root \(uid 0\) and has mode 0644/,
      ),
    );
    expect(readTokenFile(file)).toEqual([full]);
    expect(readdirSync(directory)).toEqual(['tokens.json']);
  });

  test('is replaced atomically: a reader with the old file open reads all of it, and no other file is left', async () => {
    await add(full);
    const before = statSync(file).ino;
    await add(storedToken('another', 'other'));
    expect(statSync(file).ino).not.toBe(before);
    expect(readdirSync(directory)).toEqual(['tokens.json']);
  });

  test('is unchanged after a change that throws, and can be changed again', async () => {
    await add(full);
    const before = readFileSync(file, 'utf8');
    const failing = changeTokenFile(file, () => {
      throw new OperatorError('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(readFileSync(file, 'utf8')).toBe(before);
    expect(readdirSync(directory)).toEqual(['tokens.json']);
    await add(storedToken('another', 'other'));
    expect(readTokenFile(file)).toHaveLength(2);
  });

  test('leaves no temporary file, which may contain a secret, if it cannot be replaced', async () => {
    mkdirSync(file); // nothing can be renamed over a directory
    await expect(writeFileDurably(file, 'secret')).rejects.toThrow();
    expect(readdirSync(directory)).toEqual(['tokens.json']);
  });

  test('rejects a token that could not be read back', async () => {
    await add(full);
    const infinite = storedToken('unreadable', 'other', { rate: Number.POSITIVE_INFINITY });
    await expect(add(infinite)).rejects.toThrow();
    expect(readTokenFile(file)).toEqual([full]);
  });

  describe('a broken tokens file', () => {
    const write = (content: unknown) =>
      writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    const withToken = (change: Record<string, unknown>) => ({ version: 1, tokens: [{ ...full, ...change }] });

    test.each<[string, unknown]>([
      ['empty', ''],
      ['truncated', '{"version":1,"tokens":[{"name":"fu'],
      ['not JSON', 'tokens: []'],
      ['null', 'null'],
      ['a list', '[]'],
      ['of a later version', { version: 2, tokens: [] }],
      ['without a version', { tokens: [] }],
      ['with a field that this version does not know', { version: 1, tokens: [], more: true }],
      ['with a restriction that this version does not know', withToken({ only_on_sundays: true })],
      ['with an unknown scope', withToken({ scopes: ['everything'] })],
      ['without scopes', withToken({ scopes: [] })],
      ['pinned to no project', withToken({ projects: [] })],
      ['pinned to an empty project', withToken({ projects: [''] })],
      ['with an expiry that is not a timestamp', withToken({ expires_at: 'tomorrow' })],
      ['with an expiry that is a number', withToken({ expires_at: 1_800_000_000 })],
      ['with a rate of 0', withToken({ rate: 0 })],
      ['with a secret where the hash should be', withToken({ sha256: createSecret() })],
    ])('is rejected as a whole: %s', (_, content) => {
      write(content);
      expect(() => readTokenFile(file)).toThrow(OperatorError);
    });

    test('is named in one line that does not quote its content', () => {
      write('{"version":1,"tokens":[],"secret":"dnd_do-not-quote-me"} x');
      let message = '';
      try {
        readTokenFile(file);
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toContain(file);
      expect(message).not.toMatch(/do-not-quote-me|\n/);
    });

    test('is reported with its path and "permission denied" if it may not be read', async () => {
      await add(full);
      chmodSync(file, 0o000);
      const read = () =>
        expect(() => readTokenFile(file)).toThrow(
          /^cannot read the tokens file \S+: EACCES: permission denied for user \S+ \(uid \d+\); \S+ belongs to user \S+ \(uid \d+\) and has mode 0000: run this as its owner or as root$/,
        );
      chmodSync(directory, 0o755);
      await (isRoot ? asNobody(read) : read());
      chmodSync(directory, 0o700);
      if (isRoot)
        await asNobody(() =>
          expect(() => readTokenFile(file)).toThrow(/, who cannot enter its directory or write to it$/),
        );
    });

    test('is not replaced by a command that adds a token', async () => {
      write('{"version":1,"tok');
      await expect(add(full)).rejects.toThrow(OperatorError);
      expect(readFileSync(file, 'utf8')).toBe('{"version":1,"tok');
    });
  });
});
