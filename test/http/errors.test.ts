import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DendroError, type ErrorCode } from '../../src/domain/errors.ts';
import { errorResponse, STATUS_BY_CODE, toClientError } from '../../src/http/error-response.ts';
import { API_KEY, fetchResponse, startTestApp, type TestApp } from '../support/app.ts';
import { BUILT_IN, type CustomEndpoints, FAULT, writeEndpointFolders } from '../support/custom-endpoints.ts';

const QUERY = '/api/endpoints/query';

describe('error responses', () => {
  let custom: CustomEndpoints;
  let app: TestApp;
  beforeAll(async () => {
    custom = writeEndpointFolders({ fault: FAULT });
    app = await startTestApp({
      endpointFolders: { builtIn: BUILT_IN, custom: custom.folder },
    });
  });
  afterAll(async () => {
    await app.close();
    custom.remove();
  });

  test.each([
    ['a required parameter is missing', 400, 'missing_parameter', 'project', `${QUERY}/logs.all`],
    ['a required parameter is empty', 400, 'missing_parameter', 'project', `${QUERY}/logs.all?project=`],
    [
      'an unknown interval',
      400,
      'invalid_parameter',
      'interval',
      `${QUERY}/usage.api-counts?project=a&interval=x`,
    ],
    [
      'an invalid expression',
      400,
      'invalid_parameter',
      'project',
      `${QUERY}/usage.api-counts?project=(&interval=daily`,
    ],
    ['a parameter given twice', 400, 'invalid_parameter', 'project', `${QUERY}/logs.all?project=a&project=a`],
    ['a NUL character', 400, 'invalid_parameter', 'project', `${QUERY}/logs.all?project=%00`],
    [
      'a value too long',
      400,
      'invalid_parameter',
      'project',
      `${QUERY}/logs.all?project=${'p'.repeat(1025)}`,
    ],
    [
      'a bad timestamp',
      400,
      'invalid_parameter',
      'iso_timestamp_end',
      `${QUERY}/logs.all?project=a&iso_timestamp_end=x`,
    ],
    ['an unknown format', 400, 'invalid_parameter', 'format', `${QUERY}/logs.all?project=a&format=xml`],
    ['an unknown endpoint', 404, 'not_found', undefined, `${QUERY}/logs.none`],
    ['an unknown UUID', 404, 'not_found', undefined, `${QUERY}/00000000-0000-4000-8000-000000000000`],
    ['an unknown path', 404, 'not_found', undefined, '/api/endpoint'],
  ])('%s: %i %s', async (_, status, code, param, path) => {
    const response = await app.get(path);
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const body = JSON.parse(response.text);
    expect(Object.keys(body)).toEqual(['error']);
    expect(Object.keys(body.error)).toEqual(
      param === undefined ? ['code', 'message'] : ['code', 'message', 'param'],
    );
    expect(body.error).toMatchObject(param === undefined ? { code } : { code, param });
    expect(body.error.message).toMatch(/\w+ \w+/);
  });

  test('the error for an unknown interval lists the allowed intervals', async () => {
    const { error } = await app.query('usage.api-counts', { project: 'a', interval: 'weekly' });
    expect(error.message).toMatch(/minutely, hourly, daily/);
  });

  test('the error for an invalid regular expression gives the reason', async () => {
    const { error } = await app.query('usage.api-counts', { project: 'a(b', interval: 'daily' });
    expect(error.message).toMatch(/missing \)/);
  });

  test('the error for a missing token says how to send one', async () => {
    const { status, headers, error } = await app.get(`${QUERY}/logs.all?project=a`, { headers: {} });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toBe('Bearer');
    expect(error.code).toBe('unauthorized');
    expect(error.message).toContain('X-API-KEY');
  });

  describe.each([
    ['/health'],
    ['/openapi.json'],
    ['/api/endpoints'],
    [`${QUERY}/logs.all`],
    [`${QUERY}/no-such-endpoint`],
  ])('%s', path => {
    test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
      '%s is 405 and the message lists the allowed methods',
      async method => {
        const { status, headers, error } = await app.get(path, { method });
        expect(status).toBe(405);
        expect(headers.get('allow')).toBe('GET, HEAD');
        expect(error.code).toBe('method_not_allowed');
        expect(error.message).toContain('GET, HEAD');
      },
    );
  });

  test('errors of the internal listener have the same shape', async () => {
    const unknown = await fetchResponse(`${app.internalUrl}/api/endpoints`, {
      headers: { 'X-API-KEY': API_KEY },
    });
    expect(unknown.status).toBe(404);
    expect(unknown.error.code).toBe('not_found');
  });

  describe('an internal error', () => {
    test('is 500 without details, and the details are logged', async () => {
      const { status, text, headers } = await app.query('test.fault', { number: 'no-number-at-all' });
      expect(status).toBe(500);
      expect(text).toBe(
        '{"error":{"code":"internal","message":"internal error; the server log has the details"}}',
      );
      const failure = app.events.find(event => event.type === 'request_failed');
      expect(failure).toMatchObject({ route: `${QUERY}/*`, id: headers.get('dendro-request-id') });
      expect(String(failure?.type === 'request_failed' && failure.error)).toContain('Conversion Error');
    });

    test('does not affect the next request', async () => {
      await app.query('test.fault', { number: 'seven' });
      expect((await app.query('test.fault', { number: '7' })).text).toBe('{"result":[{"answer":7}]}');
    });
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
      for (const secret of [
        wrong,
        API_KEY,
        'dendro-test-',
        custom.folder,
        process.cwd(),
        '.sql',
        '.ts:',
        'node:',
        '\\n',
      ])
        expect(text).not.toContain(secret);
      expect(text).not.toMatch(/\b(select|regexp_matches|edge_logs|duckdb|Invalid Input)\b/i);
    }
  });

  test('every error code has its documented status', () => {
    const byStatus: Record<number, ErrorCode[]> = {
      400: ['invalid_parameter', 'missing_parameter', 'invalid_body'],
      401: ['unauthorized'],
      403: ['forbidden'],
      404: ['not_found'],
      405: ['method_not_allowed'],
      406: ['not_acceptable'],
      408: ['request_timeout'],
      413: ['payload_too_large'],
      414: ['uri_too_long'],
      415: ['unsupported_media_type'],
      422: ['nothing_accepted', 'idempotency_conflict'],
      429: ['rate_limited'],
      431: ['headers_too_large'],
      500: ['internal'],
      503: ['unavailable'],
      504: ['query_timeout'],
    };
    const flat = Object.entries(byStatus).flatMap(([status, codes]) =>
      codes.map(code => [code, Number(status)]),
    );
    expect(STATUS_BY_CODE).toEqual(Object.fromEntries(flat));
  });

  test.each(['unavailable', 'rate_limited'] as const)('%s has Retry-After', code => {
    const { headers } = errorResponse(new DendroError(code, 'later'));
    expect(headers[headers.indexOf('Retry-After') + 1]).toMatch(/^[1-9]\d*$/);
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
