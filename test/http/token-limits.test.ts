import { beforeAll, describe, expect, test } from 'vitest';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const QUERY = '/api/endpoints/query';

describe('the maximum tier of a token', () => {
  const tokens = useTokens({
    FREE: { tier: 'FREE' },
    PRO: { tier: 'PRO' },
    PAYG: { tier: 'PAYG' },
    ENTERPRISE: { tier: 'ENTERPRISE' },
    GOLD: { tier: 'GOLD' },
    any: {},
  });
  const app = useApp({ tokensFile: tokens.file }, new ManualTimer());
  beforeAll(async () => {
    await app.append('edge', [
      edgeRecord({ id: 'today', at: '2026-11-14T12:00:00Z' }),
      edgeRecord({ id: 'this week', at: '2026-11-10T12:00:00Z' }),
      edgeRecord({ id: 'this quarter', at: '2026-09-14T12:00:00Z' }),
    ]);
  });

  const send = (token: keyof typeof tokens.secrets, parameters: Record<string, string>) =>
    app.get(`${QUERY}/logs.all?${new URLSearchParams({ project: 'alpha', ...parameters })}`, {
      headers: { 'X-API-KEY': tokens.secrets[token] },
    });

  // Days of records: a row is the token's maximum tier, a column the requested tier.
  test.each([
    ['FREE', { FREE: 1, PRO: 1, PAYG: 1, ENTERPRISE: 1, '': 1, pro: 1 }],
    ['PRO', { FREE: 1, PRO: 7, PAYG: 7, ENTERPRISE: 7, '': 1, pro: 1 }],
    ['PAYG', { FREE: 1, PRO: 7, PAYG: 90, ENTERPRISE: 90, '': 1, pro: 1 }],
    ['ENTERPRISE', { FREE: 1, PRO: 7, PAYG: 90, ENTERPRISE: 90, '': 1, pro: 1 }],
    ['any', { FREE: 1, PRO: 7, PAYG: 90, ENTERPRISE: 90, '': 1, pro: 1 }],
    ['GOLD', { FREE: 1, PRO: 1, PAYG: 1, ENTERPRISE: 1, '': 1, pro: 1 }], // unknown to the endpoint: the lowest
  ] as const)('%s: a higher tier behaves as that one, a lower one stays', async (token, daysByTier) => {
    const rowsByDays: Readonly<Record<number, number>> = { 1: 1, 7: 2, 90: 3 };
    for (const [tier, days] of Object.entries(daysByTier)) {
      const { rows } = await send(token, { project_tier: tier });
      expect(rows, tier).toHaveLength(rowsByDays[days] ?? 0);
    }
  });

  test('a start before the limit of the maximum tier sets Dendro-Clipped', async () => {
    const clippedOf = async (token: 'PRO' | 'any') => {
      const parameters = { project_tier: 'ENTERPRISE', iso_timestamp_start: '2026-10-01' };
      return (await send(token, parameters)).headers.get('dendro-clipped');
    };
    expect(await clippedOf('PRO')).toBe('retention');
    expect(await clippedOf('any')).toBeNull();
  });
});

// Time passes only when a test advances it.
describe('the rate of a token', () => {
  const tokens = useTokens({
    two: { rate: 2 },
    slow: { rate: 0.1 },
    other: { rate: 2 },
    pinned: { rate: 1, projects: ['alpha'], scopes: ['query:logs.all'] },
  });
  const app = useApp({ tokensFile: tokens.file }, new ManualTimer());

  const send = (token: keyof typeof tokens.secrets, path: string, method = 'GET') =>
    app.get(path, { method, headers: { 'X-API-KEY': tokens.secrets[token] } });
  const CALL = `${QUERY}/logs.all?project=alpha`;
  const rested = () => app.pass(60_000);

  test('a request above the rate is 429 with Retry-After, which limits no other token', async () => {
    await rested();
    for (let i = 0; i < 2; i++) expect((await send('two', CALL)).status).toBe(200);
    const { status, headers, error } = await send('two', CALL);
    expect([status, error.code, headers.get('retry-after')]).toEqual([429, 'rate_limited', '1']);
    expect(error.message).toContain('2 requests per second');
    expect((await send('other', CALL)).status).toBe(200);
    for (let i = 0; i < 5; i++)
      expect((await app.get(CALL, { headers: { 'X-API-KEY': 'wrong' } })).status).toBe(401);
  });

  test('a request after Retry-After seconds succeeds', async () => {
    await rested();
    expect((await send('slow', CALL)).status).toBe(200);
    const { status, headers } = await send('slow', CALL);
    expect(status).toBe(429);
    expect(headers.get('retry-after')).toBe('10');
    await app.pass(9_999);
    expect((await send('slow', CALL)).headers.get('retry-after')).toBe('1');
    await app.pass(1);
    expect((await send('slow', CALL)).status).toBe(200);
  });

  test('counts every request with a valid token: other routes, HEAD, errors', async () => {
    await rested();
    expect((await send('two', '/api/endpoints')).status).toBe(200);
    expect((await send('two', `${QUERY}/logs.all`, 'HEAD')).status).toBe(400);
    expect((await send('two', CALL, 'HEAD')).status).toBe(429);
    expect((await send('two', '/api/endpoints')).status).toBe(429);
  });

  test('is checked after path and method, and before endpoint, scope, parameters and pin', async () => {
    const allowed: [string, string, number][] = [
      ['GET', '/nowhere', 404],
      ['GET', QUERY, 404],
      ['DELETE', '/nowhere', 404],
      ['POST', '/health', 405],
      ['DELETE', CALL, 405],
      ['GET', '/health', 200],
      ['GET', '/openapi.json', 200],
    ];
    const names = [
      'no.such',
      'usage.api-counts?project=alpha&interval=daily',
      'logs.all',
      'logs.all?project=beta',
    ];
    const limited = [...names.map(name => `${QUERY}/${name}`), `${CALL}&format=xml`, CALL];
    for (const [method, path, expected] of [
      ...allowed,
      ...limited.map(path => ['GET', path, 429] as const),
    ]) {
      await rested();
      expect((await send('pinned', CALL)).status).toBe(200);
      expect((await send('pinned', path, method)).status, path).toBe(expected);
    }
  });
});
