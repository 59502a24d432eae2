import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { withFileLock } from '../../src/system/file-lock.ts';
import { readTokenFile } from '../../src/token/token-file.ts';
import { runDendro } from '../support/process.ts';

describe('the file lock of the tokens file', () => {
  let directory: string;
  let file: string;
  let lock: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'dendro-tokens-'));
    file = join(directory, 'tokens.json');
    lock = `${file}.lock`;
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const NAMES = Array.from({ length: 8 }, (_, i) => `token-${i}`);
  const ALL_MADE = NAMES.map(() => ({ code: 0, stderr: '', stdout: expect.stringMatching(/^dnd_/) }));
  const createAtOnce = () =>
    Promise.all(
      NAMES.map(name => runDendro(['token', 'create', '--name', name, '--scope', 'query', '--tokens', file])),
    );
  const leaveLock = (ageMs: number) => {
    writeFileSync(lock, '');
    const at = new Date(Date.now() - ageMs);
    utimesSync(lock, at, at);
  };

  test('eight concurrent commands create eight tokens, and a reader never sees an incomplete file', async () => {
    let isRunning = true;
    const reading = (async () => {
      let previous = 0;
      while (isRunning) {
        const count = readTokenFile(file).length;
        expect(count).toBeGreaterThanOrEqual(previous);
        previous = count;
        await sleep(1);
      }
    })();
    const outcomes = await createAtOnce();
    isRunning = false;
    await reading;
    expect(outcomes).toEqual(ALL_MADE);
    expect(
      readTokenFile(file)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(NAMES);
    expect(new Set(readTokenFile(file).map(({ sha256 }) => sha256)).size).toBe(8);
    expect(existsSync(lock)).toBe(false);
  });

  test('a lock without an owner, as an earlier version left it, is removed after 2 s', async () => {
    leaveLock(11_000);
    expect(await withFileLock(file, () => 'changed')).toBe('changed');
    expect(existsSync(lock)).toBe(false);
  });

  test('eight concurrent commands that find a stale lock create eight tokens', async () => {
    leaveLock(60_000);
    expect(await createAtOnce()).toEqual(ALL_MADE);
    expect(
      readTokenFile(file)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(NAMES);
  });

  test('a lock that is released within 5 s is waited for', async () => {
    leaveLock(0);
    let isFree = false;
    const changing = withFileLock(file, () => isFree);
    await sleep(100);
    isFree = true;
    rmSync(lock);
    expect(await changing).toBe(true);
  });

  test('a lock that is not released is named in an error after 5 s, and stays', {
    timeout: 20_000,
  }, async () => {
    let hasChanged = false;
    await withFileLock(file, async () => {
      const changing = withFileLock(file, () => {
        hasChanged = true;
      });
      await expect(changing).rejects.toThrow(`${lock}: another process holds this lock (PID ${process.pid})`);
      expect(hasChanged).toBe(false);
      expect(existsSync(lock)).toBe(true);
    });
  });

  test('a change that throws releases the lock', async () => {
    const changing = withFileLock(file, () => {
      throw new Error('no');
    });
    await expect(changing).rejects.toThrow('no');
    expect(existsSync(lock)).toBe(false);
  });

  test('a missing directory is an error immediately', async () => {
    const missing = join(directory, 'missing', 'tokens.json');
    await expect(withFileLock(missing, () => {})).rejects.toThrow(
      `cannot create the lock file ${missing}.lock`,
    );
  });
});
