import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createTokenSet } from '../../src/token/active-tokens.ts';
import { allows, createSecret, hasExpired, hashSecret, isScope } from '../../src/token/token.ts';
import { micros } from '../support/app.ts';
import { storedToken } from '../support/made-tokens.ts';

describe('a secret', () => {
  test('is dnd_ and 43 URL-safe characters', () => {
    for (let i = 0; i < 200; i++) expect(createSecret()).toMatch(/^dnd_[A-Za-z0-9_-]{43}$/);
  });

  test('carries 256 bits, another 256 each time', () => {
    const secrets = Array.from({ length: 1000 }, createSecret);
    expect(new Set(secrets).size).toBe(1000);
    expect(Buffer.from(createSecret().slice(4), 'base64url')).toHaveLength(32);
    // Every one of its bits is seen both set and not set.
    const seen = { set: Buffer.alloc(32), clear: Buffer.alloc(32) };
    for (const secret of secrets)
      for (const [i, byte] of Buffer.from(secret.slice(4), 'base64url').entries()) {
        seen.set[i] = (seen.set[i] ?? 0) | byte;
        seen.clear[i] = (seen.clear[i] ?? 0) | ~byte;
      }
    expect([...seen.set, ...seen.clear].every(byte => byte === 0xff)).toBe(true);
  });

  test('is kept as its SHA-256 in hexadecimal', () => {
    const secret = createSecret();
    expect(hashSecret(secret)).toBe(createHash('sha256').update(secret).digest('hex'));
  });
});

describe('a set of tokens', () => {
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
  ])('finds none by %j', secret => {
    expect(set.find(secret)).toBeUndefined();
  });

  test('opens to nobody where it is empty', () => {
    expect(createTokenSet([]).find('')).toBeUndefined();
  });
});

describe('scopes', () => {
  test.each([
    'query',
    'query:logs.all',
    'query:my-own.endpoint_2',
    'ingest',
    'ingest:edge',
    'ingest:function_edge',
    'metrics',
  ])('%s is one', scope => {
    expect(isScope(scope)).toBe(true);
  });

  test.each([
    '',
    'Query',
    'query:',
    'query:Logs.All',
    'query:logs.all:x',
    'query:*',
    'query: logs.all',
    'ingest:',
    'ingest:edge_logs',
    'ingest:nothing',
    'metrics:all',
    'metrics:',
    'admin',
    '*',
    'query,ingest',
    'query ingest',
    '__proto__',
  ])('%j is none', scope => {
    expect(isScope(scope)).toBe(false);
  });

  // Held scopes on the left, what they open on the right; everything else stays shut.
  const asked = [
    'query',
    'query:logs.all',
    'query:logs',
    'ingest',
    'ingest:edge',
    'ingest:function',
    'metrics',
  ];
  test.each([
    [['query'], ['query', 'query:logs.all', 'query:logs']],
    [['query:logs.all'], ['query:logs.all']],
    [['query:logs'], ['query:logs']],
    [
      ['query:logs', 'query:logs.all'],
      ['query:logs.all', 'query:logs'],
    ],
    [['ingest'], ['ingest', 'ingest:edge', 'ingest:function']],
    [['ingest:edge'], ['ingest:edge']],
    [['ingest:function_edge'], []],
    [['metrics'], ['metrics']],
    [
      ['metrics', 'ingest:edge'],
      ['ingest:edge', 'metrics'],
    ],
    [[], []],
  ])('%j open %j alone', (scopes, opened) => {
    const token = storedToken('t', 's', { scopes });
    const split = (scope: string) => scope.split(':') as [area: string, below?: string];
    expect(asked.filter(scope => allows(token, ...split(scope)))).toEqual(opened);
  });
});

describe('expiry', () => {
  const until = (expires_at?: string) => storedToken('t', 's', { expires_at });

  test.each([
    ['2026-11-14T12:34:56.789011Z', false],
    ['2026-11-14T12:34:56.789012Z', true],
    ['2026-11-14T12:34:56.789013Z', true],
  ])('to the microsecond: at %s a token good until .789012 has expired: %s', (now, expired) => {
    expect(hasExpired(until('2026-11-14T12:34:56.789012Z'), () => micros(now))).toBe(expired);
  });

  test.each([
    ['2026-11-14T11:59:59.999999Z', false],
    ['2026-11-14T12:00:00Z', true],
    ['2027-01-01T00:00:00Z', true],
  ])('at %s a token good until the full hour has expired: %s', (now, expired) => {
    expect(hasExpired(until('2026-11-14T12:00:00Z'), () => micros(now))).toBe(expired);
  });

  test('a token without one never expires', () => {
    expect(hasExpired(until(undefined), () => micros('9999-12-31T23:59:59Z'))).toBe(false);
  });
});
