import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { BUILT_IN, testEndpoint } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { functionEdgeRecord } from '../support/record.ts';
import { useApp, useEndpoints, useTokens } from '../support/use-app.ts';

/** Answers the days of the tier. */
const TIERED = testEndpoint('test.tiered', {
  parameters: {
    tier: {
      type: 'choice',
      choices: { FREE: { days: 1 }, PRO: { days: 7 }, ENTERPRISE: { days: 90 } },
      fallback: 'FREE',
      tiers: true,
    },
  },
  columns: { days: 'integer' },
  isCached: true,
  sql: 'select cast($days as integer) as days',
});

// The first request with a token and a URL is handled step by step. The next ones are answered by one lookup (cache-hit.ts).
describe('a cache hit', () => {
  const tokens = useTokens({
    any: {},
    free: { tier: 'FREE' },
    pro: { tier: 'PRO' },
    redacted: { redact_pii: true },
    pinned: { projects: ['alpha'] },
    other: { projects: ['beta'] },
    narrow: { scopes: ['query:logs.all'] },
    limited: { rate: 3 },
  });
  const own = useEndpoints({ tiered: TIERED });
  const endpointFolders = { builtIn: BUILT_IN, custom: own.folder };
  const app = useApp({ cacheBytes: 1e6, tokensFile: tokens.file, endpointFolders }, new ManualTimer());
  beforeAll(async () => {
    const at = '2026-11-14T12:00:00Z';
    await app.append('function_edge', [functionEdgeRecord({ at }), functionEdgeRecord({ at, id: '2' })]);
  });

  const TARGET = '/api/endpoints/query/functions.invocation-stats?project=alpha&interval=1hr';
  const send = async (headers: Record<string, string>, target = TARGET) => {
    const response = await app.get(target, { headers });
    const { 'cache-status': cache = '', ...described } = Object.fromEntries(response.headers);
    for (const name of ['date', 'server-timing', 'cache-control', 'dendro-request-id'])
      delete described[name];
    return { cache, same: { status: response.status, text: response.text, described } };
  };

  test('is the same response as that of the first request, for every token and representation', async () => {
    const { limited: _, ...others } = tokens.secrets;
    const secrets = [...Object.values(others), API_KEY];
    const variants = [
      {},
      { Accept: 'text/csv' },
      { Accept: 'image/png' },
      { 'Accept-Encoding': 'gzip' },
      { 'If-None-Match': '*' },
      { 'X-Unknown': 'x'.repeat(17_000) },
    ];
    const requests = secrets.flatMap(secret =>
      variants.map(headers => ({ 'X-API-KEY': secret, ...headers })),
    );
    const first = [];
    for (const headers of requests) first.push((await send(headers)).same);
    const statuses = new Set(first.map(({ status }) => status));
    expect([...statuses].sort()).toEqual([200, 304, 403, 406, 431]);
    for (let round = 0; round < 2; round++)
      for (const [index, headers] of requests.entries()) {
        const { cache, same } = await send(headers);
        expect([same, cache]).toEqual([first[index], same.status < 400 ? 'dendro; hit; ttl=900' : '']);
      }
  });

  test('of a token has the limits of that token, in any order', async () => {
    const days = { any: 90, pro: 7, free: 1 };
    for (const name of ['any', 'free', 'pro', 'free', 'any', 'pro', 'any'] as const) {
      const target = '/api/endpoints/query/test.tiered?tier=ENTERPRISE';
      const { same } = await send({ 'X-API-KEY': tokens.secrets[name] }, target);
      expect(JSON.parse(same.text)).toEqual({ result: [{ days: days[name] }] });
    }
  });

  test('ends when the entry expires, when the client forces a refresh, and when the token is revoked', async () => {
    const headers = { 'X-API-KEY': tokens.secrets.any };
    await send(headers);
    expect((await send(headers)).cache).toBe('dendro; hit; ttl=900');
    expect((await send({ ...headers, 'Cache-Control': 'no-cache' })).cache).toBe('dendro; fwd=request');
    await app.pass(10_000);
    expect((await send(headers)).cache).toBe('dendro; hit; ttl=890');
    await tokens.revoke('any');
    await app.pass(500);
    expect((await send(headers)).same.status).toBe(401);
    expect((await send({ 'X-API-KEY': API_KEY })).same.status).toBe(200);
  });

  test('counts towards the rate of its token', async () => {
    const headers = { 'X-API-KEY': tokens.secrets.limited };
    const statuses = [];
    for (let request = 0; request < 5; request++) statuses.push((await send(headers)).same.status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
  });

  test('names a choice with an unlisted value in Dendro-Ignored, as the request that it shares the entry with does not', async () => {
    const call = async (tier: string) => {
      const { headers } = await app.get(`/api/endpoints/query/test.tiered?tier=${tier}`);
      return [headers.get('cache-status')?.split('; ')[1], headers.get('dendro-ignored')];
    };
    await call('FREE');
    for (let round = 0; round < 2; round++) {
      expect(await call('secret')).toEqual(['hit', 'tier']);
      expect(await call('FREE')).toEqual(['hit', null]);
      expect(await call('')).toEqual(['hit', null]);
      expect(await call('free&x=1')).toEqual(['hit', 'tier, x']);
    }
  });

  test('is not mistaken for another URL', async () => {
    const headers = { 'X-API-KEY': API_KEY };
    const formats = ['%66ormat=csv', 'forma%74=csv', '%66%6f%72%6D%61%74=csv', 'f%6Frmat=%63sv'];
    const targets = [
      '&',
      '&interval=',
      '&format=csv',
      '&timestamps=iso',
      ...formats.map(each => `&${each}`),
    ].map(more => `${TARGET}${more}`);
    const first = [];
    for (const target of targets) first.push((await send(headers, target)).same);
    expect(new Set(first.map(({ text }) => text)).size).toBe(4);
    expect(new Set(first.slice(4).map(({ text }) => text))).toEqual(new Set([first[2]?.text]));
    for (const [index, target] of targets.entries())
      expect((await send(headers, target)).same).toEqual(first[index]);
  });
});
