import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, startTestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { createTokens } from '../support/tokens.ts';
import { useApp, useTokens } from '../support/use-app.ts';

// The access matrix. A column is a kind of token, a cell the expected status. The queries use the project that the
// pinned token is pinned to; `&x` adds a bad parameter. Requests with several errors show the order of the checks: path, method,
// token, endpoint, scope, parameters.
const TABLE = `
                                     none  wrong  expired  revoked  full  query  logs  usage  stats  pinned  ingest  metrics  admin
GET  /api/endpoints/query/{logs}      401   401    401      401     200    200   200    403    403    200     403     403    403
GET  /api/endpoints/query/{logs-id}   401   401    401      401     200    200   200    403    403    200     403     403    403
GET  /api/endpoints/query/{usage}     401   401    401      401     200    200   403    200    403    200     403     403    403
GET  /api/endpoints/query/{usage-id}  401   401    401      401     200    200   403    200    403    200     403     403    403
GET  /api/endpoints/query/{stats}     401   401    401      401     200    200   403    403    200    200     403     403    403
GET  /api/endpoints/query/{stats-id}  401   401    401      401     200    200   403    403    200    200     403     403    403
GET  /api/endpoints/query/{unknown}   401   401    401      401     404    404   403    403    403    404     403     403    403
GET  /api/endpoints/query/{no-uuid}   401   401    401      401     404    404   403    403    403    404     403     403    403
GET  /api/endpoints/query/{below}     401   401    401      401     404    404   403    403    403    404     403     403    403
GET  /api/endpoints/query/{encoded}   401   401    401      401     200    200   200    403    403    200     403     403    403
GET  /api/endpoints/query/{case}      401   401    401      401     404    404   403    403    403    404     403     403    403
GET  /api/endpoints/query/{longer}    401   401    401      401     404    404   403    403    403    404     403     403    403
GET  /api/endpoints/query/{escape}    401   401    401      401     404    404   403    403    403    404     403     403    403
GET  /api/endpoints/query/{logs}&x    401   401    401      401     400    400   400    403    403    400     403     403    403
GET  /api/endpoints/query/{unknown}&x 401   401    401      401     404    404   403    403    403    404     403     403    403
GET  /api/endpoints                   401   401    401      401     200    200   200    200    200    200     403     403    403
GET  /api/alerts                      401   401    401      401     404    404   403    403    403    403     403     403    403
GET  /openapi.json                    200   200    200      200     200    200   200    200    200    200     200     200    200
GET  /health                          200   200    200      200     200    200   200    200    200    200     200     200    200
GET  /api/endpoints/query             404   404    404      404     404    404   404    404    404    404     404     404    404
GET  /metrics                         404   404    404      404     404    404   404    404    404    404     404     404    404
GET  /api/logs                        404   404    404      404     404    404   404    404    404    404     404     404    404
GET  /nowhere                         404   404    404      404     404    404   404    404    404    404     404     404    404
POST /api/endpoints/query/{logs}      401   401    401      401     200    200   200    403    403    200     403     403    403
POST /api/endpoints/query/{unknown}   401   401    401      401     404    404   403    403    403    404     403     403    403
PUT  /api/endpoints/query/{logs}      405   405    405      405     405    405   405    405    405    405     405     405    405
POST /api/endpoints                   405   405    405      405     405    405   405    405    405    405     405     405    405
POST /api/alerts                      405   405    405      405     405    405   405    405    405    405     405     405    405
POST /openapi.json                    405   405    405      405     405    405   405    405    405    405     405     405    405
POST /health                          405   405    405      405     405    405   405    405    405    405     405     405    405
POST /api/logs                        404   404    404      404     404    404   404    404    404    404     404     404    404
POST /nowhere                         404   404    404      404     404    404   404    404    404    404     404     404    404
`;

const NAMES: Readonly<Record<string, string>> = {
  '{logs}': 'logs.all',
  '{logs-id}': '36d4086c-7022-4186-9a0f-e33ec7d730da',
  '{usage}': 'usage.api-counts',
  '{usage-id}': '0FBECA51-CAAA-4F7D-83F0-8110AA708839',
  '{stats}': 'functions.invocation-stats',
  '{stats-id}': '32b1a47e-6418-4d0a-9647-b9694b8a7e35',
  '{unknown}': 'no.such',
  '{no-uuid}': '00000000-0000-4000-8000-000000000000',
  '{below}': 'logs.all:more',
  '{encoded}': 'logs%2Eall',
  '{case}': 'LOGS.ALL',
  '{longer}': 'logs.all.more',
  '{escape}': '%zz',
};

const SPECS = {
  expired: { expires_at: '2026-11-14T12:34:56.789012Z' },
  revoked: {},
  full: { scopes: ['query', 'ingest', 'metrics'] },
  query: { scopes: ['query'] },
  logs: { scopes: ['query:logs.all'] },
  usage: { scopes: ['query:usage.api-counts'] },
  stats: { scopes: ['query:functions.invocation-stats'] },
  pinned: { projects: ['alpha'] },
  ingest: { scopes: ['ingest', 'ingest:edge'] },
  metrics: { scopes: ['metrics'] },
  admin: { scopes: ['admin'] },
};

describe('access by kind of token', () => {
  const tokens = useTokens(SPECS);
  const app = useApp({ tokensFile: tokens.file }, new ManualTimer());
  beforeAll(async () => {
    const at = '2026-11-14T12:34:00Z';
    await app.append('edge', [edgeRecord({ at, message: 'a row' })]);
    await app.append('function_edge', [functionEdgeRecord({ at })]);
    expect((await send('GET', '/api/endpoints', 'revoked')).status).toBe(200);
    await tokens.revoke('revoked');
    await app.pass(1000);
  });

  /** Advances time meanwhile: the app's timer is manual, and the auth throttle would delay wrong tokens forever. */
  const send = async (method: string, path: string, kind: string) => {
    const secrets: Readonly<Record<string, string>> = { none: '', wrong: 'dnd_wrong', ...tokens.secrets };
    const answering = app.get(path, { method, headers: { 'X-API-KEY': secrets[kind] ?? '' } });
    await app.pass(200);
    return answering;
  };

  const [heading = '', ...lines] = TABLE.trim().split('\n');
  const kinds = heading.trim().split(/\s+/);
  const rows = lines.flatMap(line => {
    const [method = '', place = '', ...statuses] = line.trim().split(/\s+/);
    const path = place
      .replace(/\{.+\}/, name => `${NAMES[name]}?project=alpha&interval=hourly`)
      .replace(/&x$/, '&format=xml');
    const expected = Object.fromEntries(kinds.map((kind, i) => [kind, Number(statuses[i])]));
    return (method === 'GET' ? ['GET', 'HEAD'] : [method]).map(each => ({
      method: each,
      place,
      path,
      expected,
    }));
  });

  test.each(rows)('$method $place', async ({ method, path, expected }) => {
    const found: Record<string, number> = {};
    for (const kind of kinds) {
      const { status, text } = await send(method, path, kind);
      found[kind] = status;
      if (status !== 200) expect(text, kind).not.toMatch(/a row|"result"/);
      if (method === 'HEAD') expect(text).toBe('');
    }
    expect(found).toEqual(expected);
  });

  test('wrong, expired and revoked tokens get the same response', async () => {
    const path = '/api/endpoints/query/logs.all?project=alpha';
    const wrong = await send('GET', path, 'wrong');
    for (const kind of ['expired', 'revoked']) {
      const response = await send('GET', path, kind);
      expect(response.text).toBe(wrong.text);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
  });

  test('the missing scope is named', async () => {
    const query = await send('GET', '/api/endpoints/query/logs.all', 'usage');
    expect(query.error.message).toBe(
      'the token needs the scope query or query:NAME of this endpoint; it has: query:usage.api-counts',
    );
    const post = (path: string, kind: keyof typeof SPECS) =>
      fetch(`${app.internalUrl}${path}`, { method: 'POST', headers: { 'X-API-KEY': tokens.secrets[kind] } });
    expect(await (await post('/api/logs?source_name=edge', 'query')).text()).toContain(
      'the token needs the scope ingest or ingest:edge; it has: query',
    );
    expect(await (await post('/v1/logs?source_name=auth', 'query')).text()).toContain(
      'the token needs the scope ingest or ingest:auth; it has: query',
    );
    for (const path of ['erase', 'alerts/silence', 'alerts/test', 'alerts/send-test'])
      expect(await (await post(`/api/admin/${path}`, 'full')).text()).toContain('needs the scope admin');
  });

  test('a token limited to one endpoint cannot find out which others exist', async () => {
    const unknown = await send('GET', '/api/endpoints/query/no.such', 'logs');
    for (const name of Object.values(NAMES).filter(each => !/^(logs.all|logs%2Eall|36d4.*)$/.test(each)))
      expect((await send('GET', `/api/endpoints/query/${name}`, 'logs')).text).toBe(unknown.text);
  });

  test.each([
    ['query', ['functions.invocation-stats', 'logs.all', 'usage.api-counts']],
    ['pinned', ['functions.invocation-stats', 'logs.all', 'usage.api-counts']],
    ['logs', ['logs.all']],
    ['usage', ['usage.api-counts']],
    ['stats', ['functions.invocation-stats']],
  ])('the catalog and OpenAPI list what the token %s may call', async (kind, expected) => {
    const { rows: listed } = await send('GET', '/api/endpoints', kind);
    expect(listed.map(({ name }) => name).sort()).toEqual(expected);
    const { paths } = JSON.parse((await send('GET', '/openapi.json', kind)).text) as { paths: object };
    for (const name of ['functions.invocation-stats', 'logs.all', 'usage.api-counts'])
      expect(Object.keys(paths).some(path => path.endsWith(`/${name}`))).toBe(expected.includes(name));
  });

  test.each(['/api/endpoints', '/openapi.json'])(
    '%s differs by token and forbids shared caching',
    async path => {
      const { headers } = await send('GET', path, 'logs');
      const isKeptApart =
        /no-store|private/.test(headers.get('cache-control') ?? '') ||
        /X-API-KEY.*Authorization/i.test(headers.get('vary') ?? '');
      expect(isKeptApart).toBe(true);
    },
  );

  test('a token is valid until the last microsecond before its expiry', async () => {
    const brief = await createTokens({ brief: { expires_at: '2026-11-14T12:34:56.789013Z' } });
    const other = await startTestApp({ tokensFile: brief.file });
    const statusNow = async () =>
      (await other.get('/api/endpoints', { headers: { 'X-API-KEY': brief.secrets.brief } })).status;
    try {
      expect(await statusNow()).toBe(200);
      other.setNow('2026-11-14T12:34:56.789013Z');
      expect(await statusNow()).toBe(401);
      expect((await other.get('/api/endpoints', { headers: { 'X-API-KEY': API_KEY } })).status).toBe(200);
    } finally {
      await other.close();
      brief.remove();
    }
  });
});
