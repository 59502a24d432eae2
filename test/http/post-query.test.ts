import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { BUILT_IN, EXPLORE, testEndpoint } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { openConnection, rawRequest, sendRaw } from '../support/raw-http.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { STUDIO_CONFIG } from '../support/studio-client.ts';
import { useApp, useEndpoints, useTokens } from '../support/use-app.ts';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const PATH = '/api/endpoints/query/functions.invocation-stats';

/** Returns the text of its parameter. */
const ECHO = testEndpoint('test.echo', {
  parameters: { value: { required: false }, flag: { type: 'boolean' }, count: { type: 'integer' } },
  columns: { value: 'text', flag: 'text', count: 'integer' },
  sql: 'select $value as value, cast($flag as text) as flag, cast($count as bigint) as count',
});

describe('POST to the path of a query', () => {
  const own = useEndpoints({ echo: ECHO });
  const tokens = useTokens({
    any: {},
    logs: { scopes: ['query:logs.all'] },
    pinned: { projects: ['alpha'] },
    limited: { rate: 1 },
  });
  const timer = new ManualTimer();
  const app = useApp(
    {
      ...STUDIO_CONFIG,
      cacheBytes: 1e6,
      minUploadRate: 1024,
      tokensFile: tokens.file,
      endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: own.folder },
    },
    timer,
  );
  beforeAll(async () => {
    const at = '2026-11-14T12:00:00Z';
    await app.append('function_edge', [
      functionEdgeRecord({ at }),
      functionEdgeRecord({ at, project: 'beta' }),
    ]);
    await app.append('edge', [edgeRecord({ at, id: 'e1' }), edgeRecord({ at, id: 'e2', project: 'beta' })]);
  });

  const post = (body: string | Uint8Array, headers: Record<string, string> = {}, path = PATH) =>
    app.get(path, {
      method: 'POST',
      headers: { 'X-API-KEY': API_KEY, 'Content-Type': JSON_TYPE, ...headers },
      body,
    });
  const postJson = (body: unknown, path?: string, headers = {}) => post(JSON.stringify(body), headers, path);
  const postForm = (body: string, path?: string) => post(body, { 'Content-Type': FORM_TYPE }, path);
  const echo = async (json: string) => (await post(json, {}, '/api/endpoints/query/test.echo')).rows?.[0];

  test('returns what GET returns, for a JSON object, a form, a part of the parameters in the URL, and no body', async () => {
    const url = `${PATH}?project=alpha&interval=1hr`;
    const { text } = await app.get(url);
    const responses = [
      await postJson({ project: 'alpha', interval: '1hr' }),
      await postForm('project=alpha&interval=1hr'),
      await post(
        'interval=%31hr',
        { 'Content-Type': `${FORM_TYPE}; charset=UTF-8` },
        `${PATH}?project=alpha`,
      ),
      await postJson({}, url),
      await post('', {}, url),
      await post('', { 'Content-Type': 'text/plain' }, url),
      await app.get(url, { method: 'POST', headers: { Authorization: `Bearer ${API_KEY}` } }),
    ];
    for (const { status, text: its } of responses) expect([status, its]).toEqual([200, text]);
    expect(text).toContain('"count":1');
  });

  test('shares its cache entry with GET, and its response is cached under no URL', async () => {
    const asked = { project: 'alpha', interval: '5min' };
    expect((await postJson(asked)).headers.get('cache-status')).toBe('dendro; fwd=miss');
    const { status, headers, text } = await postJson(asked, PATH, { 'If-None-Match': '*' });
    expect([status, headers.get('cache-status'), headers.get('cache-control')]).toEqual([
      200,
      'dendro; hit; ttl=10',
      'private, max-age=10',
    ]);
    const byGet = await app.get(`${PATH}?${new URLSearchParams(asked)}`);
    expect([byGet.text, byGet.headers.get('etag')]).toEqual([text, headers.get('etag')]);
    expect(byGet.headers.get('cache-status')).toBe('dendro; hit; ttl=10');
    // A cache hit of GET is found by its URL alone.
    const { status: withoutParameters, error } = await app.get(PATH);
    expect([withoutParameters, error.param]).toEqual([400, 'project']);
    expect((await postJson({ project: 'beta', interval: '1hr' })).text).toContain('"count":1');
    expect((await postJson({ project: 'none', interval: '1hr' })).rows).toEqual([]);
    expect((await postJson(asked, PATH, { 'Cache-Control': 'no-cache' })).headers.get('cache-status')).toBe(
      'dendro; fwd=request',
    );
  });

  test('takes the format of a POST from its body, and names undeclared parameters of the body', async () => {
    const { headers, text } = await postJson({ project: 'alpha', interval: '1hr', format: 'csv', projct: 1 });
    expect(headers.get('content-type')).toMatch(/^text\/csv/);
    expect(headers.get('dendro-ignored')).toBe('projct; did you mean project');
    expect(text).toMatch(/^timestamp,/);
  });

  test.each([
    ['{"value":"a b+c&d=é😀"}', { value: 'a b+c&d=é😀' }],
    ['{"value":1763000000000000001}', { value: '1763000000000000001' }],
    ['{"value":12345678901234567890123456789.5}', { value: '12345678901234567890123456789.5' }],
    ['{"value":-1.50}', { value: '-1.5' }],
    ['{"value":1e400}', { value: '1e400' }],
    ['{"count":1e3}', { count: 1000 }],
    ['{"count":7,"flag":true,"value":false}', { count: 7, flag: 'true', value: 'false' }],
    ['{"value":"\\ud800"}', { value: '\uFFFD' }],
    ['{"__proto__":"x","constructor":1}', {}],
    [' {} ', {}],
  ])('reads the JSON object %s', async (json, expected) => {
    expect(await echo(json)).toEqual({ value: null, flag: null, count: null, ...expected });
  });

  test.each<[string, string, number, string, string?]>([
    ['{"project":null}', JSON_TYPE, 400, 'invalid_parameter', 'project'],
    ['{"project":["alpha"]}', JSON_TYPE, 400, 'invalid_parameter', 'project'],
    ['{"unknown":{}}', JSON_TYPE, 400, 'invalid_parameter', 'unknown'],
    [`{"${'n'.repeat(1000)}":null}`, JSON_TYPE, 400, 'invalid_parameter', 'n'.repeat(64)],
    ['project=a&project=a', FORM_TYPE, 400, 'invalid_parameter', 'project'],
    ['x=1&x=2', FORM_TYPE, 400, 'missing_parameter', 'project'],
    ['interval=1hr', FORM_TYPE, 400, 'missing_parameter', 'project'],
    ['{"interval":""}', JSON_TYPE, 400, 'missing_parameter', 'project'],
    ['{"project":"a\\u0000"}', JSON_TYPE, 400, 'invalid_parameter', 'project'],
    [`{"project":"${'a'.repeat(1025)}"}`, JSON_TYPE, 400, 'invalid_parameter', 'project'],
    ['[]', JSON_TYPE, 400, 'invalid_body'],
    ['null', JSON_TYPE, 400, 'invalid_body'],
    ['1', JSON_TYPE, 400, 'invalid_body'],
    ['{"project":"alpha"', JSON_TYPE, 400, 'invalid_body'],
    ['project=alpha', JSON_TYPE, 400, 'invalid_body'],
    ['[['.repeat(30_000), JSON_TYPE, 400, 'invalid_body'],
    ['{"project":"alpha"}', 'text/plain', 415, 'unsupported_media_type'],
    ['{"project":"alpha"}', 'application/x-ndjson', 415, 'unsupported_media_type'],
    ['project=alpha', 'multipart/form-data; boundary=x', 415, 'unsupported_media_type'],
    [`{"project":"${'a'.repeat(64 * 1024)}"}`, JSON_TYPE, 413, 'payload_too_large'],
  ])('refuses the body %.40s of the type %s with %i %s', async (body, type, status, code, param) => {
    const { status: its, error } = await post(body, { 'Content-Type': type });
    expect([its, error.code, error.param]).toEqual([status, code, param]);
    expect(error.message).not.toContain(body);
  });

  test('refuses a name that is in the URL too, a compressed body, a body without a type, and invalid UTF-8', async () => {
    for (const name of ['project', 'anything', 'format']) {
      const { status, error } = await postJson({ [name]: 'a' }, `${PATH}?${name}=a`);
      expect([status, error.code, error.param]).toEqual([400, 'invalid_parameter', name]);
    }
    const compressed = await post('{}', { 'Content-Encoding': 'gzip' });
    expect([compressed.status, compressed.error.code]).toEqual([415, 'unsupported_media_type']);
    const headers = { 'X-API-KEY': API_KEY, 'Content-Length': '1' };
    expect((await sendRaw(app.url, rawRequest(`POST ${PATH}`, headers, 'a'))).status).toBe(415);
    for (const type of [JSON_TYPE, FORM_TYPE]) {
      const body = Buffer.from(type === JSON_TYPE ? '{"project":"\xff"}' : 'project=\xff', 'latin1');
      const { status, error } = await post(body, { 'Content-Type': type });
      expect([status, error.code]).toEqual([400, 'invalid_body']);
    }
  });

  test('a body of 64 KiB is accepted, also in chunks, and the connection stays open after a larger one', async () => {
    const connection = await openConnection(app.url);
    const bodyOf = (bytes: number) => `project=alpha&x=${'x'.repeat(bytes - 'project=alpha&x='.length)}`;
    const headers = { 'X-API-KEY': API_KEY, 'Content-Type': FORM_TYPE };
    const send = (body: string) =>
      connection.ask(rawRequest(`POST ${PATH}`, { ...headers, 'Content-Length': `${body.length}` }, body));
    const sendChunks = (body: string) =>
      connection.ask(
        rawRequest(`POST ${PATH}`, { ...headers, 'Transfer-Encoding': 'chunked' }) +
          `${(body.match(/.{1,1000}/g) ?? []).map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`,
      );
    try {
      for (const [bytes, status] of [
        [65_536, 200],
        [65_537, 413],
        [100, 200],
      ] as const) {
        expect((await send(bodyOf(bytes))).status).toBe(status);
        expect((await sendChunks(bodyOf(bytes))).status).toBe(status);
      }
    } finally {
      connection.close();
    }
  });

  test('checks the token, its rate and its scope before the body, and reads no token from it', async () => {
    const body = { 'X-API-KEY': API_KEY, api_key: API_KEY, token: API_KEY, project: ['invalid'] };
    const statusOf = async (secret: string, path = PATH) =>
      (await postJson(body, path, { 'X-API-KEY': secret })).status;
    expect(await statusOf('')).toBe(401);
    expect(await statusOf('wrong-token-of-this-test')).toBe(401);
    expect(await statusOf(tokens.secrets.logs)).toBe(403);
    expect(await statusOf(tokens.secrets.any, '/api/endpoints/query/nowhere')).toBe(404);
    expect(await statusOf(tokens.secrets.limited)).toBe(400);
    expect(await statusOf(tokens.secrets.limited)).toBe(429);
    // The response does not wait for the body.
    const connection = await openConnection(app.url);
    const head = rawRequest(`POST ${PATH}`, { 'Content-Length': '100', 'Content-Type': JSON_TYPE });
    expect((await connection.ask(head)).status).toBe(401);
    connection.close();
  });

  test('a pinned token gets 403 for the project of another in the body', async () => {
    const statusOf = async (project: string) =>
      (await postJson({ project }, PATH, { 'X-API-KEY': tokens.secrets.pinned })).status;
    expect([await statusOf('alpha'), await statusOf('beta')]).toEqual([200, 403]);
  });

  test('a body that arrives too slowly gets 408, and the connection is closed', async () => {
    const connection = await openConnection(app.url);
    const headers = { 'X-API-KEY': API_KEY, 'Content-Type': JSON_TYPE, 'Content-Length': '1000' };
    connection.write(rawRequest(`POST ${PATH}`, headers, '{'));
    const response = connection.next();
    let isOver = false;
    void response.finally(() => {
      isOver = true;
    });
    await expect
      .poll(async () => {
        await timer.advance(10_000);
        return isOver;
      })
      .toBe(true);
    expect((await response).status).toBe(408);
    await connection.ended;
  });

  test('a query of Studio can have 32,768 characters', async () => {
    const query = (length: number) => {
      const sql = "select id from edge_logs where event_message != ''";
      return postJson(
        { project: 'alpha', sql: `${sql}${' '.repeat(length - sql.length)}` },
        '/api/endpoints/query/logs.all',
      );
    };
    const { status, rows } = await query(32_768);
    expect([status, rows]).toEqual([200, [{ id: 'e1' }]]);
    const { status: tooLong, error } = await query(32_769);
    expect([tooLong, error.param]).toEqual([400, 'sql']);
    expect(error.message).toContain('at most 32768 are supported');
  });

  test('other routes of the public listener have no POST', async () => {
    for (const path of ['/api/endpoints', '/api/endpoints/explain/logs.all', '/openapi.json', '/']) {
      const { status, headers } = await post('{}', {}, path);
      expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
  });
});
