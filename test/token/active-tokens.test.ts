import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Event } from '../../src/observe/event.ts';
import { type ActiveTokens, createTokenSet, watchTokens } from '../../src/token/active-tokens.ts';
import { hashSecret } from '../../src/token/token.ts';
import { changeTokenFile } from '../../src/token/token-file.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { storedToken } from '../support/tokens.ts';

describe('a token set', () => {
  const set = createTokenSet([storedToken('one', 'secret-one'), storedToken('two', 'secret-two')]);

  test('finds a token by its secret', () => {
    expect(set.size).toBe(2);
    expect(set.find('secret-two')?.name).toBe('two');
  });

  test.each([
    '',
    'secret-',
    'secret-ones',
    'SECRET-ONE',
    hashSecret('secret-one'),
    '__proto__',
    'constructor',
  ])('finds no token by %j', secret => {
    expect(set.find(secret)).toBeUndefined();
  });

  test('finds nothing if it is empty', () => {
    expect(createTokenSet([]).find('')).toBeUndefined();
  });
});

describe('the active tokens of a running server', () => {
  let directory: string;
  let file: string;
  let timer: ManualTimer;
  let events: Event[];
  let watched: ActiveTokens | undefined;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'dendro-tokens-'));
    file = join(directory, 'tokens.json');
    timer = new ManualTimer();
    events = [];
  });
  afterEach(() => {
    watched?.close();
    rmSync(directory, { recursive: true, force: true });
  });

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

  test('a created token is valid within 500 ms', async () => {
    await write('one');
    const tokens = watch();
    await write('one', 'two');
    await timer.advance(499);
    expect(tokens.find('two')).toBeUndefined();
    await timer.advance(1);
    expect(tokens.find('two')?.name).toBe('of two');
    expect(tokens.size).toBe(2);
    expect(events).toEqual([{ type: 'tokens_read', count: 2 }]);
  });

  test('a revoked token is invalid within 500 ms', async () => {
    await write('one', 'two');
    const tokens = watch();
    await write('one');
    await timer.advance(500);
    expect(tokens.find('two')).toBeUndefined();
    expect(tokens.find('one')).toBeDefined();
  });

  test('an unchanged tokens file is not read again', async () => {
    await write('one');
    watch();
    await timer.advance(60_000);
    expect(events).toEqual([]);
  });

  test('every one of several changes is detected', async () => {
    await write('one');
    const tokens = watch();
    for (const secret of ['two', 'three', 'four']) {
      await write(secret);
      await timer.advance(500);
      expect(tokens.find(secret)).toBeDefined();
      expect(tokens.size).toBe(1);
    }
  });

  test('a tokens file that is created after startup is read', async () => {
    const tokens = watch('a-key-of-sixteen-or-more');
    await write('one');
    await timer.advance(500);
    expect(tokens.find('one')).toBeDefined();
    expect(tokens.find('a-key-of-sixteen-or-more')?.scopes).toEqual(['query', 'ingest', 'metrics']);
  });

  test('DENDRO_API_KEY stays valid whatever the tokens file contains', async () => {
    await write('one');
    const tokens = watch('a-key-of-sixteen-or-more');
    await write();
    await timer.advance(500);
    expect(tokens.find('a-key-of-sixteen-or-more')?.name).toBe('DENDRO_API_KEY');
    expect(tokens.find('one')).toBeUndefined();
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
    'a tokens file that is %s keeps the last valid set, and one event reports it',
    async (_, breakFile) => {
      await write('one', 'two');
      const tokens = watch();
      rmSync(file);
      breakFile();
      await timer.advance(5_000);
      expect(tokens.find('one')).toBeDefined();
      expect(tokens.size).toBe(2);
      expect(eventTypes()).toEqual(['tokens_unreadable']);
    },
  );

  test.each(breakings)('a tokens file that was %s is read again after it is fixed', async (_, breakFile) => {
    await write('one');
    const tokens = watch();
    rmSync(file);
    breakFile();
    await timer.advance(500);
    rmSync(file, { recursive: true, force: true });
    await write('two');
    await timer.advance(500);
    expect(tokens.find('two')).toBeDefined();
    expect(tokens.find('one')).toBeUndefined();
    expect(eventTypes()).toEqual(['tokens_unreadable', 'tokens_read']);
  });

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
