import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { BUILT_IN, type CustomEndpoints, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { functionEdgeRecord } from '../support/record.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const TIERED = {
  yaml: `
id: 0f0ac0de-7d6b-4f38-9b4b-3d6a7e1f2c33
name: test.tiered
description: Answers the days of the tier.
reads: edge
parameters:
  tier:
    type: choice
    choices: { FREE: { days: 1 }, PRO: { days: 7 }, ENTERPRISE: { days: 90 } }
    fallback: FREE
    tiers: true
    description: Any tier.
columns:
  days: { type: integer, description: Its days. }
cache: { lifetime_seconds: 900, warming_seconds: 300 }
`,
  sql: 'select cast($days as integer) as days',
};

// A result that was validated for one token must never be returned for a token with other limits.
describe('the same query string with several tokens', () => {
  type Name = 'open' | 'free' | 'pro' | 'pinned' | 'elsewhere' | 'limited';
  let own: CustomEndpoints;
  let tokens: TestTokens<Name>;
  let app: TestApp;
  beforeAll(async () => {
    own = writeEndpointFolders({ tiered: TIERED });
    tokens = await createTokens({
      open: {},
      free: { tier: 'FREE' },
      pro: { tier: 'PRO' },
      pinned: { projects: ['abc'] },
      elsewhere: { projects: ['other'] },
      limited: { scopes: ['query:logs.all'] },
    });
    app = await startTestApp({
      cacheBytes: 64 * 1024 * 1024,
      endpointFolders: { builtIn: BUILT_IN, custom: own.folder },
      tokensFile: tokens.file,
    });
    await app.append('function_edge', [
      functionEdgeRecord({ at: '2026-11-14T12:30:00Z', project: 'abc' }),
      functionEdgeRecord({ at: '2026-11-14T12:31:00Z', project: 'other' }),
    ]);
  });
  afterAll(async () => {
    await app.close();
    tokens.remove();
    own.remove();
  });

  const send = (path: string, token: Name) =>
    app.get(`/api/endpoints/query/${path}`, { headers: { 'X-API-KEY': tokens.secrets[token] } });

  test('each token gets its own tier, in any order', async () => {
    const days = { open: 90, pro: 7, free: 1 };
    for (const name of ['open', 'free', 'pro', 'free', 'open', 'pro', 'open'] as const)
      expect((await send('test.tiered?tier=ENTERPRISE', name)).rows).toEqual([{ days: days[name] }]);
  });

  test('each token is limited to its own pin and scope, whatever the order of requests', async () => {
    const path = 'functions.invocation-stats?project=abc';
    for (let turn = 0; turn < 3; turn++) {
      const open = await send(path, 'open');
      const pinned = await send(path, 'pinned');
      expect([open.status, pinned.status]).toEqual([200, 200]);
      expect(pinned.rows).toEqual(open.rows);
      // The token is pinned to abc, so its results are those of abc.
      expect(open.headers.get('dendro-data-through')).toBe('2026-11-14T12:31:00Z');
      expect(pinned.headers.get('dendro-data-through')).toBe('2026-11-14T12:30:00Z');
      expect((await send(path, 'elsewhere')).status).toBe(403);
      expect((await send(path, 'limited')).status).toBe(403);
    }
  });

  test('each endpoint interprets the query string by its own parameters', async () => {
    const query = 'project=abc&interval=hourly';
    for (let turn = 0; turn < 2; turn++) {
      expect(Object.keys((await send(`usage.api-counts?${query}`, 'open')).rows[0] ?? {})).not.toContain(
        'count',
      );
      expect((await send(`functions.invocation-stats?${query}`, 'open')).rows[0]).toHaveProperty('count');
    }
  });

  test('an invalid query string is 400 every time', async () => {
    for (let turn = 0; turn < 2; turn++) {
      const { status, error } = await send('usage.api-counts?project=abc&interval=yearly', 'open');
      expect([status, error.param]).toEqual([400, 'interval']);
    }
  });

  test.each(['format=csv', '%66ormat=csv', 'forma%74=csv', '%66%6f%72%6D%61%74=csv', 'f%6Frmat=%63sv'])(
    'the parameter format is recognized when percent-encoded: %s',
    async parameter => {
      for (let turn = 0; turn < 2; turn++) {
        const { headers } = await send(`functions.invocation-stats?project=abc&${parameter}`, 'open');
        expect(headers.get('content-type')).toMatch(/^text\/csv/);
      }
    },
  );
});
