import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { allows, createSecret, hasExpired, hashSecret, isScope } from '../../src/token/token.ts';
import { micros } from '../support/app.ts';
import { storedToken } from '../support/tokens.ts';

describe('the secret of a token', () => {
  test('is dnd_ and 256 random bits, and is stored as its SHA-256 in hexadecimal', () => {
    const secrets = Array.from({ length: 1000 }, createSecret);
    expect(new Set(secrets).size).toBe(1000);
    for (const secret of secrets) {
      expect(secret).toMatch(/^dnd_[A-Za-z0-9_-]{43}$/);
      expect(hashSecret(secret)).toBe(createHash('sha256').update(secret).digest('hex'));
    }
    // Every bit occurs both set and not set.
    const seen = { set: Buffer.alloc(32), clear: Buffer.alloc(32) };
    for (const secret of secrets)
      for (const [i, byte] of Buffer.from(secret.slice(4), 'base64url').entries()) {
        seen.set[i] = (seen.set[i] ?? 0) | byte;
        seen.clear[i] = (seen.clear[i] ?? 0) | ~byte;
      }
    expect([...seen.set, ...seen.clear].every(byte => byte === 0xff)).toBe(true);
  });
});

describe('scopes', () => {
  test('are query, ingest, metrics, admin and studio, and one endpoint or one log kind of the first two', () => {
    const valid = [...'query query:logs.all query:my-own.endpoint_2 ingest ingest:edge'.split(' ')];
    for (const scope of [...valid, 'ingest:function_edge', 'metrics', 'admin', 'studio'])
      expect([scope, isScope(scope)]).toEqual([scope, true]);
    const invalid = [
      ...'Query query: query:Logs.All query:logs.all:x query:* ingest: ingest:edge_logs'.split(' '),
      ...'ingest:nothing metrics:all metrics: admin: admin:backup Admin studio:logs.all * query,ingest __proto__'.split(
        ' ',
      ),
    ];
    for (const scope of [...invalid, '', 'query: logs.all', 'query ingest'])
      expect([scope, isScope(scope)]).toEqual([scope, false]);
  });

  // The token's scopes on the left, what they allow on the right; everything else is not allowed.
  const candidates =
    'query query:logs.all query:logs ingest ingest:edge ingest:function metrics admin studio'.split(' ');
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
    [['admin'], ['admin']],
    [['studio'], ['studio']],
    [
      ['metrics', 'ingest:edge'],
      ['ingest:edge', 'metrics'],
    ],
    [[], []],
  ])('the scopes %j allow only %j', (scopes, opened) => {
    const token = storedToken('t', 's', { scopes });
    const split = (scope: string) => scope.split(':') as [area: string, below?: string];
    expect(candidates.filter(scope => allows(token, ...split(scope)))).toEqual(opened);
  });

  test('a token that is pinned to projects has neither metrics nor admin, which concern all projects', () => {
    const token = storedToken('t', 's', { scopes: ['query', 'metrics', 'admin'], projects: ['alpha'] });
    expect(candidates.filter(scope => allows(token, scope))).toEqual(['query']);
  });
});

describe('the expiry of a token', () => {
  const until = (expires_at?: string) => storedToken('t', 's', { expires_at });

  test.each(['2026-11-14T12:34:56.789012Z', '2026-11-14T12:00:00Z'])(
    '%s is exact to the microsecond',
    expiry => {
      const expiredAt = [-1n, 0n, 1n, 86_400_000_000n].map(step =>
        hasExpired(until(expiry), () => micros(expiry) + step),
      );
      expect(expiredAt).toEqual([false, true, true, true]);
    },
  );

  test('a token without an expiry never expires', () => {
    expect(hasExpired(until(undefined), () => micros('9999-12-31T23:59:59Z'))).toBe(false);
  });
});
