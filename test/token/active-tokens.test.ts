import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Event } from '../../src/observe/event.ts';
import { type ActiveTokens, createTokenSet, watchTokens } from '../../src/token/active-tokens.ts';
import { hashSecret } from '../../src/token/token.ts';
import { changeTokenFile } from '../../src/token/token-file.ts';
import { useDirectory } from '../support/hooks.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { storedToken } from '../support/tokens.ts';

describe('a token set', () => {
  const set = createTokenSet([storedToken('one', 'secret-one'), storedToken('two', 'secret-two')]);

  test('finds a token by its secret only', () => {
    expect(set.list.length).toBe(2);
    expect(set.find('secret-two')?.name).toBe('two');
    const others = ['', 'secret-', 'secret-ones', 'SECRET-ONE', '__proto__', 'constructor'];
    for (const secret of [...others, hashSecret('secret-one')]) expect(set.find(secret)).toBeUndefined();
    expect(createTokenSet([]).find('')).toBeUndefined();
  });
});

describe('the active tokens of a running server', () => {
  const directory = useDirectory();
  const file = join(directory, 'tokens.json');
  let timer: ManualTimer;
  let events: Event[];
  let watched: ActiveTokens | undefined;
  beforeEach(() => {
    timer = new ManualTimer();
    events = [];
  });
  afterEach(() => watched?.close());

  const watch = (apiKey?: string) => {
    const keys =
      apiKey === undefined
        ? []
        : [{ name: 'DENDRO_API_KEY', secret: apiKey, scopes: ['query', 'ingest', 'metrics'] }];
    watched = watchTokens(file, keys, timer, event => events.push(event));
    return watched;
  };
  const write = (...secrets: string[]) =>
    changeTokenFile(file, () => secrets.map(secret => storedToken(`of ${secret}`, secret)));
  const eventTypes = () => events.map(event => event.type);

  test('each change takes effect within 500 ms: a created token is valid, a revoked one invalid', async () => {
    await write('one');
    const tokens = watch();
    await timer.advance(60_000);
    expect(events).toEqual([]); // an unchanged file is not read again
    for (const secrets of [['one', 'two'], ['two'], ['three']]) {
      await write(...secrets);
      await timer.advance(499);
      expect(events).toEqual([]);
      await timer.advance(1);
      const isValid = (secret: string) => tokens.find(secret)?.name === `of ${secret}`;
      expect(['one', 'two', 'three'].filter(isValid)).toEqual(secrets);
      expect(tokens.list.length).toBe(secrets.length);
      expect(events.splice(0)).toEqual([{ type: 'tokens_read', count: secrets.length }]);
    }
  });

  test('DENDRO_API_KEY is valid without a tokens file, and whatever a file contains that is created later', async () => {
    const key = 'a-key-of-sixteen-or-more';
    const tokens = watch(key);
    for (const secrets of [[], ['one'], []]) {
      expect(tokens.find(key)).toMatchObject({
        name: 'DENDRO_API_KEY',
        scopes: ['query', 'ingest', 'metrics'],
      });
      await write(...secrets);
      await timer.advance(500);
      expect(tokens.find('one') !== undefined).toBe(secrets.length === 1);
    }
    expect(tokens.find(key)).toBeDefined();
  });

  test('a broken tokens file at startup is an error', () => {
    writeFileSync(file, '{');
    expect(() => watch()).toThrow(`${file}: not a tokens file that this version can read`);
  });

  // All of these happen in practice: an editor that writes in place, a full disk, a wrong mount.
  const breakings: [string, () => void][] = [
    ['truncated', () => writeFileSync(file, '{"version":1,"tokens":[{"na')],
    ['emptied', () => writeFileSync(file, '')],
    ['replaced by a directory', () => mkdirSync(file)],
    ['removed', () => {}],
    ['replaced by a dangling link', () => symlinkSync(join(directory, 'nowhere'), file)],
    ['replaced by a link to itself', () => symlinkSync(file, file)],
  ];

  test.each(breakings)(
    'a tokens file that is %s keeps the last valid set, one event reports it, and it is read when it is fixed',
    async (_, breakFile) => {
      await write('one', 'two');
      const tokens = watch();
      rmSync(file);
      breakFile();
      await timer.advance(5_000);
      expect(tokens.find('one')).toBeDefined();
      expect(tokens.list.length).toBe(2);
      expect(eventTypes()).toEqual(['tokens_unreadable']);
      rmSync(file, { recursive: true, force: true });
      await write('three');
      await timer.advance(500);
      expect(tokens.find('three')).toBeDefined();
      expect(tokens.find('one')).toBeUndefined();
      expect(eventTypes()).toEqual(['tokens_unreadable', 'tokens_read']);
    },
  );

  test('reading an unreadable file is retried even if it does not change, and one event reports it', async () => {
    await write('one');
    const tokens = watch();
    await write('two');
    const good = readFileSync(file);
    const at = new Date('2026-11-14T12:00:00Z');
    writeFileSync(file, Buffer.alloc(good.length, '{'));
    utimesSync(file, at, at);
    await timer.advance(2_000);
    writeFileSync(file, good); // same size and same modification time
    utimesSync(file, at, at);
    await timer.advance(500);
    expect(tokens.find('one')).toBeUndefined();
    expect(tokens.find('two')).toBeDefined();
    expect(eventTypes()).toEqual(['tokens_unreadable', 'tokens_read']);
  });

  test('the error for a broken tokens file does not quote its content', async () => {
    await write('one');
    watch();
    writeFileSync(file, '{"dnd_do-not-quote-me":');
    await timer.advance(500);
    const [event] = events;
    expect(event?.type === 'tokens_unreadable' ? String(event.error) : '').toContain(file);
    expect(JSON.stringify(events.map(e => ('error' in e ? String(e.error) : e)))).not.toContain(
      'do-not-quote',
    );
  });

  test('a tokens file is read again if only its mode changes', async () => {
    await write('one');
    watch();
    chmodSync(file, 0o400);
    await timer.advance(500);
    expect(eventTypes()).toEqual(['tokens_read']);
  });

  test('after close the tokens file is not checked', async () => {
    await write('one');
    const tokens = watch();
    tokens.close();
    await write('two');
    await timer.advance(5_000);
    expect(events).toEqual([]);
    expect(tokens.find('one')).toBeDefined();
  });
});
