import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { LastUsedTimes, readLastUsed } from '../../src/token/last-used.ts';
import { hashSecret } from '../../src/token/token.ts';
import { changeTokenFile, type StoredToken } from '../../src/token/token-file.ts';
import { API_KEY, micros, NOW, startTestApp } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { createTokens, storedToken } from '../support/tokens.ts';

describe('the last-used times', () => {
  const directory = useDirectory();
  const tokensFile = join(directory, 'tokens.json');
  const file = join(directory, 'tokens-last-used.json');
  let timer: ManualTimer;
  let now: bigint;
  const one = storedToken('one', 'dnd_secret-one');
  const two = storedToken('two', 'dnd_secret-two');
  const writeTokens = (...tokens: StoredToken[]) => changeTokenFile(tokensFile, () => tokens);
  beforeEach(async () => {
    timer = new ManualTimer();
    now = micros(NOW);
    await writeTokens(one, two);
  });

  const open = () => new LastUsedTimes(tokensFile, () => now, timer);
  const afterMinute = async <T>(read: () => T) => {
    await timer.advance(60_000);
    return read();
  };

  test('are written once a minute, not when a token is used, and have the last of many uses', async () => {
    const times = open();
    for (let i = 0; i < 1000; i++) {
      now += 1n;
      times.record(one);
    }
    times.record(two);
    await timer.advance(59_999);
    expect(existsSync(file)).toBe(false);
    await timer.advance(1);
    await expect
      .poll(() => readLastUsed(tokensFile))
      .toEqual({
        [one.sha256]: '2026-11-14T12:34:56.790012Z',
        [two.sha256]: '2026-11-14T12:34:56.790012Z',
      });
  });

  test('are not written again while no token is used', async () => {
    const times = open();
    times.record(one);
    await timer.advance(60_000);
    await expect.poll(() => existsSync(file)).toBe(true);
    const { ino, mtimeMs } = statSync(file);
    await timer.advance(600_000);
    expect(statSync(file)).toMatchObject({ ino, mtimeMs });
    times.record(one);
    await expect.poll(() => afterMinute(() => statSync(file).ino)).not.toBe(ino);
  });

  test('are written on close, and not after it', async () => {
    const times = open();
    times.record(one);
    await times.close();
    expect(readLastUsed(tokensFile)).toEqual({ [one.sha256]: NOW });
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    expect(readFileSync(file, 'utf8')).not.toContain('dnd_');
    rmSync(file);
    await timer.advance(600_000);
    expect(existsSync(file)).toBe(false);
  });

  test('survive a restart, also for tokens that are not used after it', async () => {
    const before = open();
    before.record(one);
    before.record(two);
    await before.close();
    now += 5_000_000n;
    const after = open();
    after.record(two);
    await after.close();
    expect(readLastUsed(tokensFile)).toEqual({
      [one.sha256]: NOW,
      [two.sha256]: '2026-11-14T12:35:01.789012Z',
    });
  });

  test('are removed when their token is revoked', async () => {
    const times = open();
    times.record(one);
    times.record(two);
    await timer.advance(60_000);
    await expect.poll(() => Object.keys(readLastUsed(tokensFile))).toEqual([one.sha256, two.sha256]);
    await writeTokens(two);
    times.record(two);
    await times.close();
    expect(Object.keys(readLastUsed(tokensFile))).toEqual([two.sha256]);
  });

  test('are best effort: a failed write throws nothing and is retried', async () => {
    const times = open();
    rmSync(directory, { recursive: true });
    times.record(one);
    await timer.advance(180_000);
    mkdirSync(directory);
    await writeTokens(one);
    await expect.poll(() => afterMinute(() => readLastUsed(tokensFile))).toEqual({ [one.sha256]: NOW });
    rmSync(directory, { recursive: true });
    times.record(one);
    await times.close();
  });

  test.each(['', '{', 'null', '[]', '7', '"text"', '{"a":1}', '{"a":null}'])(
    'a file that contains %j counts as empty and is replaced',
    async content => {
      writeFileSync(file, content);
      expect(readLastUsed(tokensFile)[one.sha256]).toBeUndefined();
      const times = open();
      times.record(one);
      await times.close();
      expect(readLastUsed(tokensFile)).toMatchObject({ [one.sha256]: NOW });
    },
  );
});

describe('the last-used times over HTTP', () => {
  test('only valid tokens of the tokens file are recorded, and written within a minute', async () => {
    const tokens = await createTokens({
      used: {},
      forbidden: { scopes: ['ingest'] },
      idle: {},
      expired: { expires_at: '2026-11-14T12:00:00Z' },
    });
    const app = await startTestApp({ tokensFile: tokens.file }, new ManualTimer());
    try {
      for (const name of ['used', 'forbidden', 'expired'] as const)
        await app.get('/api/endpoints', { headers: { 'X-API-KEY': tokens.secrets[name] } });
      await app.get('/api/endpoints', { headers: { 'X-API-KEY': API_KEY } });
      expect(readLastUsed(tokens.file)).toEqual({});
      await app.pass(60_000);
      const { used, forbidden } = tokens.secrets;
      // The times are those of the write. DENDRO_API_KEY is not among them.
      const at = '2026-11-14T12:35:56.789012Z';
      const times = { [hashSecret(used)]: at, [hashSecret(forbidden)]: at };
      await expect.poll(() => readLastUsed(tokens.file)).toEqual(times);
      const text = readFileSync(join(dirname(tokens.file), 'tokens-last-used.json'), 'utf8');
      for (const secret of [...Object.values(tokens.secrets), API_KEY]) expect(text).not.toContain(secret);
    } finally {
      await app.close();
      tokens.remove();
    }
  });
});
