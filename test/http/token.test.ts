import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { writeFileDurably } from '../../src/system/files.ts';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { openConnection, type RawConnection, rawRequest, sendRaw } from '../support/raw-http.ts';
import { edgeRecord } from '../support/record.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const CALL = '/api/endpoints/query/logs.all?project=alpha';

describe('the token of a request', () => {
  const tokens = useTokens({ dashboard: { scopes: ['query'] } });
  const app = useApp({ tokensFile: tokens.file });
  beforeAll(async () => {
    await app.append('edge', [edgeRecord({ id: 'row', at: '2026-11-14T12:00:00Z' })]);
  });

  const statusWith = async (headers: Record<string, string>, path = CALL) => {
    const { status, text } = await app.get(path, { headers });
    if (status !== 200) expect(text).not.toContain('row');
    return status;
  };

  test('is read from X-API-KEY', async () => {
    expect(await statusWith({ 'X-API-KEY': API_KEY })).toBe(200);
    expect(await statusWith({ 'x-api-key': tokens.secrets.dashboard })).toBe(200);
  });

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer  '])(
    'is read from Authorization: %s',
    async scheme => {
      expect(await statusWith({ Authorization: `${scheme} ${tokens.secrets.dashboard}` })).toBe(200);
    },
  );

  test('is not read from another scheme, or a cookie', async () => {
    for (const scheme of ['Basic', 'Token', 'BearerX', ''])
      expect(await statusWith({ Authorization: `${scheme} ${API_KEY}`.trim() })).toBe(401);
    const basic = Buffer.from(`${API_KEY}:${API_KEY}`).toString('base64');
    expect(await statusWith({ Authorization: `Basic ${basic}` })).toBe(401);
    expect(await statusWith({ Cookie: `X-API-KEY=${API_KEY}` })).toBe(401);
  });

  test('an empty X-API-KEY counts as absent, so Bearer is read', async () => {
    expect(await statusWith({ 'X-API-KEY': '', Authorization: `Bearer ${API_KEY}` })).toBe(200);
    const blank = rawRequest(`GET ${CALL}`, { 'X-API-KEY': '   ', Authorization: `Bearer ${API_KEY}` });
    expect((await sendRaw(app.url, blank)).status).toBe(200);
  });

  test('an empty Authorization counts as absent', async () => {
    expect(await statusWith({ 'X-API-KEY': API_KEY, Authorization: '' })).toBe(200);
    expect(await statusWith({ Authorization: '' })).toBe(401);
    expect(await statusWith({ Authorization: 'Bearer ' })).toBe(401);
  });

  test('X-API-KEY is used if both headers are present, and is wrong if it is sent twice', async () => {
    expect(await statusWith({ 'X-API-KEY': API_KEY, Authorization: 'Bearer wrong' })).toBe(200);
    expect(await statusWith({ 'X-API-KEY': 'wrong', Authorization: `Bearer ${API_KEY}` })).toBe(401);
    const twice = `GET ${CALL} HTTP/1.1\r\nHost: a\r\n${`X-API-KEY: ${API_KEY}\r\n`.repeat(2)}\r\n`;
    expect((await sendRaw(app.url, twice)).status).toBe(401);
  });

  test.each(['x-api-key', 'X-API-KEY', 'api_key', 'apikey', 'token', 'access_token', 'authorization'])(
    'is never read from the query string, as %s',
    async name => {
      expect(await statusWith({}, `${CALL}&${name}=${encodeURIComponent(API_KEY)}`)).toBe(401);
      expect(await statusWith({}, `${CALL}&${name}=${encodeURIComponent(`Bearer ${API_KEY}`)}`)).toBe(401);
    },
  );

  test.each([
    ['one more character', `${API_KEY}x`],
    ['one character less', API_KEY.slice(0, -1)],
    ['another letter case', API_KEY.toUpperCase()],
    ['the token twice', `${API_KEY}, ${API_KEY}`],
    ['a space inside', API_KEY.replace('-', ' ')],
    ['a very long token', 'x'.repeat(8000)],
    ['characters outside ASCII', 'd\u00e9j\u00e0-vu-token-with-accents'],
    ['a property name of objects', '__proto__'],
    ['the hash of the token', createHash('sha256').update(API_KEY).digest('hex')],
  ])('a wrong token is 401: %s', async (_, secret) => {
    expect(await statusWith({ 'X-API-KEY': secret })).toBe(401);
  });

  test('no token and a wrong token have different messages, and both have WWW-Authenticate', async () => {
    const none = await app.get(CALL, { headers: {} });
    const wrong = await app.get(CALL, { headers: { 'X-API-KEY': 'wrong' } });
    expect(none.error.message).not.toBe(wrong.error.message);
    expect(none.error.message).toContain('X-API-KEY');
    for (const { headers, error } of [none, wrong]) {
      expect(headers.get('www-authenticate')).toBe('Bearer');
      expect(error.code).toBe('unauthorized');
    }
  });

  test.each(['/health', '/openapi.json'])('is not required at %s, and a wrong one is ignored', async path => {
    expect(await statusWith({}, path)).toBe(200);
    expect(await statusWith({ 'X-API-KEY': 'wrong' }, path)).toBe(200);
  });
});

// The server keeps the hash of the last valid token of each connection.
describe('several tokens on one connection', () => {
  let tokens: TestTokens<'dashboard' | 'shipper'>;
  let app: TestApp;
  let connection: RawConnection;
  beforeEach(async () => {
    tokens = await createTokens({ dashboard: { scopes: ['query'] }, shipper: { scopes: ['ingest'] } });
    app = await startTestApp({ tokensFile: tokens.file });
    connection = await openConnection(app.url);
  });
  afterEach(async () => {
    connection.close();
    await app.close();
    tokens.remove();
  });

  const statusWith = async (secret: string) =>
    (await connection.ask(rawRequest(`GET ${CALL}`, { 'X-API-KEY': secret }))).status;

  test('each request is served with its own token', async () => {
    const { dashboard, shipper } = tokens.secrets;
    const secrets = [dashboard, dashboard, shipper, dashboard, API_KEY, shipper, shipper, dashboard];
    const statuses = [];
    for (const secret of secrets) statuses.push(await statusWith(secret));
    expect(statuses).toEqual([200, 200, 403, 200, 200, 403, 403, 200]);
  });

  test('a wrong token that resembles the previous valid one is 401', async () => {
    const { dashboard } = tokens.secrets;
    const last = dashboard.at(-1) === 'A' ? 'B' : 'A';
    for (const wrong of [`${dashboard}A`, dashboard.slice(0, -1), `${dashboard.slice(0, -1)}${last}`, 'A']) {
      expect(await statusWith(dashboard)).toBe(200);
      expect(await statusWith(wrong)).toBe(401);
    }
  });

  test('a revoked token is 401 on the connection that has used it', async () => {
    expect(await statusWith(tokens.secrets.dashboard)).toBe(200);
    rmSync(tokens.file);
    await writeFileDurably(tokens.file, JSON.stringify({ version: 1, tokens: [] }));
    await expect.poll(() => statusWith(tokens.secrets.dashboard)).toBe(401);
  });
});
