import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/domain/errors.ts';
import { errorResponse, STATUS_BY_CODE, toClientError } from '../../src/http/error-response.ts';
import { API_KEY } from '../support/app.ts';
import { BUILT_IN, FAULT } from '../support/custom-endpoints.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

const QUERY = '/api/endpoints/query';

describe('error responses', () => {
  const custom = useEndpoints({ fault: FAULT });
  const app = useApp({
    endpointFolders: { builtIn: BUILT_IN, custom: custom.folder },
  });

  const BAD_REQUESTS: [path: string, code: ErrorCode, param?: string, message?: RegExp][] = [
    ['query/logs.all', 'missing_parameter', 'project', /^project is required/],
    [
      'query/logs.all?projct=a',
      'missing_parameter',
      'project',
      /^projct is no parameter; did you mean project\?/,
    ],
    [
      'query/usage.api-counts?project=a&interval=x',
      'invalid_parameter',
      'interval',
      /minutely, hourly, daily/,
    ],
    ['query/usage.api-counts?project=a', 'missing_parameter', 'interval', /one of minutely, hourly, daily/],
    ['query/usage.api-counts?project=a&interval=__proto__', 'invalid_parameter', 'interval'],
    ['query/usage.api-counts?project=a&interval=hourly%20', 'invalid_parameter', 'interval'],
    ['query/usage.api-counts?project=a(b&interval=daily', 'invalid_parameter', 'project', /missing \)/],
    ['query/logs.all?project=a&iso_timestamp_end=x', 'invalid_parameter', 'iso_timestamp_end'],
    ['query/logs.all?project=a&format=xml', 'invalid_parameter', 'format'],
    ['query/logs.al', 'not_found', '', /did you mean logs\.all\?/],
    ['query/weather', 'not_found', '', /^unknown endpoint; \/api\/endpoints lists/],
    ['query/00000000-0000-4000-8000-000000000000', 'not_found'],
    ['quary', 'not_found', '', /^unknown path/],
  ];
  test.each(BAD_REQUESTS)('%s: %s %s', async (path, code, param, message = /\w+ \w+/) => {
    const response = await app.get(`/api/endpoints/${path}`);
    expect(response.status).toBe(STATUS_BY_CODE[code]);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const error = { code, message: expect.stringMatching(message), ...(param && { param }) };
    expect(JSON.parse(response.text)).toEqual({ error });
  });

  test('a path of the other listener is 404, and the message names that listener', async () => {
    const post = await app.get('/api/logs?source_name=edge', { method: 'POST', body: '{}' });
    expect([post.status, post.error.message]).toEqual([
      404,
      '/api/logs is a path of the internal listener, which has another port (--internal-port, 4001 by default)',
    ]);
    expect((await app.get('/api/logs/x')).error.message).toMatch(/^unknown path/);
    const query = await fetch(`${app.internalUrl}${QUERY}/logs.all`);
    expect([query.status, await query.text()]).toEqual([404, expect.stringContaining('the public listener')]);
    const console = await fetch(`${app.internalUrl}/`);
    expect([console.status, await console.text()]).toEqual([
      404,
      expect.stringContaining('the public listener'),
    ]);
  });

  test.each([
    ['/health', 'GET, HEAD'],
    ['/openapi.json', 'GET, HEAD'],
    ['/api/endpoints', 'GET, HEAD'],
    [`${QUERY}/logs.all`, 'GET, HEAD, POST'],
    [`${QUERY}/no-such-endpoint`, 'GET, HEAD, POST'],
  ])('%s: other methods are 405 and the message lists the allowed ones', async (path, allowed) => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      if (allowed.includes(method)) continue;
      const { status, headers, error } = await app.get(path, { method });
      expect([status, headers.get('allow'), error.code]).toEqual([405, allowed, 'method_not_allowed']);
      expect(error.message).toContain(allowed);
    }
  });

  test('an internal error is 500 without details, the details are logged, and the next request is served', async () => {
    const { status, text, headers } = await app.query('test.fault', { number: 'no-number-at-all' });
    expect(status).toBe(500);
    expect(text).toBe(
      '{"error":{"code":"internal","message":"internal error; the server log has the details"}}',
    );
    const failure = app.events.find(event => event.type === 'request_failed');
    expect(failure).toMatchObject({ route: `${QUERY}/*`, id: headers.get('dendro-request-id') });
    expect(String(failure?.type === 'request_failed' && failure.error)).toContain('Conversion Error');
    expect((await app.query('test.fault', { number: '7' })).text).toBe('{"result":[{"answer":7}]}');
  });

  test('no error contains SQL, a path, a stack trace or a token', async () => {
    const wrong = 'dnd_wrong-token-of-the-suite';
    const calls: [string, RequestInit?][] = [
      [`${QUERY}/logs.all`],
      [`${QUERY}/logs.all?project=a`, { headers: { 'X-API-KEY': wrong } }],
      [`${QUERY}/logs.all?project=a`, { headers: { Authorization: `Bearer ${wrong}` } }],
      [`${QUERY}/logs.all?project=a&iso_timestamp_start=';drop table edge_logs`],
      [`${QUERY}/usage.api-counts?project=${encodeURIComponent("(')\\")}&interval=daily`],
      [`${QUERY}/usage.api-counts?project=${encodeURIComponent('(a{1000}){1000}')}&interval=daily`],
      [`${QUERY}/usage.api-counts?project=%F0%28%8C%28[&interval=daily`],
      [`${QUERY}/test.fault?number=x`],
      [`${QUERY}/%`],
      [`${QUERY}/..%2F..%2Fetc%2Fpasswd`],
      ['/../../etc/passwd'],
      [`${QUERY}/logs.all`, { method: 'DELETE' }],
    ];
    for (const [path, init] of calls) {
      const { status, text } = await app.get(path, init);
      expect(status).toBeGreaterThanOrEqual(400);
      const secrets = [
        wrong,
        API_KEY,
        'dendro-test-',
        custom.folder,
        process.cwd(),
        '.sql',
        '.ts:',
        'node:',
        '\\n',
      ];
      for (const secret of secrets) expect(text).not.toContain(secret);
      expect(text).not.toMatch(/\b(select|regexp_matches|edge_logs|duckdb|Invalid Input)\b/i);
    }
  });

  test('every error code has its documented status', () => {
    const documented = `
      400 invalid_parameter, 400 missing_parameter, 400 invalid_body, 401 unauthorized, 403 forbidden, 404 not_found,
      405 method_not_allowed, 406 not_acceptable, 408 request_timeout, 413 payload_too_large, 414 uri_too_long,
      415 unsupported_media_type, 422 nothing_accepted, 422 idempotency_conflict, 429 rate_limited,
      431 headers_too_large, 500 internal, 503 unavailable, 504 query_timeout`;
    const pairs = documented.split(',').map(pair => pair.trim().split(' '));
    expect(STATUS_BY_CODE).toEqual(Object.fromEntries(pairs.map(([status, code]) => [code, Number(status)])));
  });

  test.each([
    ['an error of the engine', new Error('Binder Error: select 1 from /var/lib/secret')],
    ['a thrown string', 'select'],
    ['a thrown undefined', undefined],
  ])('%s reaches the client only as code internal', (_, thrown) => {
    const { status, body } = errorResponse(toClientError(thrown));
    expect(status).toBe(500);
    expect(body).not.toMatch(/select|secret|Binder/);
  });
});
