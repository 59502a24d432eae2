import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type MadeTokens, makeTokens } from '../support/made-tokens.ts';
import { BUILT_IN, type OwnEndpoints, writeOwnEndpoints } from '../support/own-endpoints.ts';
import { functionEdgeRecord } from '../support/record.ts';

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

// What was worked out for one caller must never be given to another that may get less, or gets it otherwise.
describe('one query string, sent with several tokens in turn', () => {
  type Name = 'open' | 'free' | 'pro' | 'pinned' | 'elsewhere' | 'narrow';
  let own: OwnEndpoints;
  let tokens: MadeTokens<Name>;
  let app: TestApp;
  beforeAll(async () => {
    own = writeOwnEndpoints({ tiered: TIERED });
    tokens = await makeTokens({
      open: {},
      free: { tier: 'FREE' },
      pro: { tier: 'PRO' },
      pinned: { projects: ['abc'] },
      elsewhere: { projects: ['other'] },
      narrow: { scopes: ['query:logs.all'] },
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

  const ask = (path: string, token: Name) =>
    app.get(`/api/endpoints/query/${path}`, { headers: { 'X-API-KEY': tokens.secrets[token] } });

  test('each gets its own tier, in any order, again and again', async () => {
    const days = { open: 90, pro: 7, free: 1 };
    for (const name of ['open', 'free', 'pro', 'free', 'open', 'pro', 'open'] as const)
      expect((await ask('test.tiered?tier=ENTERPRISE', name)).rows).toEqual([{ days: days[name] }]);
  });

  test('each is held to its own pin and scope, whoever asked before', async () => {
    const path = 'functions.invocation-stats?project=abc';
    for (let turn = 0; turn < 3; turn++) {
      const open = await ask(path, 'open');
      const pinned = await ask(path, 'pinned');
      expect([open.status, pinned.status]).toEqual([200, 200]);
      expect(pinned.rows).toEqual(open.rows);
      // The pin is of abc, and so is all that such a token is told.
      expect(open.headers.get('dendro-data-through')).toBe('2026-11-14T12:31:00Z');
      expect(pinned.headers.get('dendro-data-through')).toBe('2026-11-14T12:30:00Z');
      expect((await ask(path, 'elsewhere')).status).toBe(403);
      expect((await ask(path, 'narrow')).status).toBe(403);
    }
  });

  test('one string means what each endpoint makes of it', async () => {
    const query = 'project=abc&interval=hourly';
    for (let turn = 0; turn < 2; turn++) {
      expect(Object.keys((await ask(`usage.api-counts?${query}`, 'open')).rows[0] ?? {})).not.toContain(
        'count',
      );
      expect((await ask(`functions.invocation-stats?${query}`, 'open')).rows[0]).toHaveProperty('count');
    }
  });

  test('a string that breaks a rule is refused every time', async () => {
    for (let turn = 0; turn < 2; turn++) {
      const { status, error } = await ask('usage.api-counts?project=abc&interval=yearly', 'open');
      expect([status, error.param]).toEqual([400, 'interval']);
    }
  });

  test.each(['format=csv', '%66ormat=csv', 'forma%74=csv', '%66%6f%72%6D%61%74=csv', 'f%6Frmat=%63sv'])(
    'the format is found however its name is written: %s',
    async parameter => {
      for (let turn = 0; turn < 2; turn++) {
        const { headers } = await ask(`functions.invocation-stats?project=abc&${parameter}`, 'open');
        expect(headers.get('content-type')).toMatch(/^text\/csv/);
      }
    },
  );
});
