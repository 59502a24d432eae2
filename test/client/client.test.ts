import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type AnyEndpoints, createClient, DendroError } from '../../client/index.ts';
import { API_KEY } from '../support/app.ts';
import { BUILT_IN, SLEEP } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

const AT = '2026-11-14T12:00:00.000001Z';

describe('the client and a real server', () => {
  const { folder: custom } = useEndpoints({ sleep: SLEEP });
  const app = useApp(
    { cacheBytes: 1024 * 1024, endpointFolders: { builtIn: BUILT_IN, custom } },
    new ManualTimer(),
  );
  beforeAll(async () => {
    await app.append('edge', [edgeRecord({ at: AT, metadata: { id: 1, nested: { a: [1] } } })]);
    await app.append('function_edge', [functionEdgeRecord({ at: AT })]);
  });
  const connect = (options = {}) => createClient({ url: `${app.url}/`, token: API_KEY, ...options });

  test('query() returns rows and what the headers say about them', async () => {
    const result = await connect().query('logs.all', { project: 'alpha', iso_timestamp_start: new Date(0) });
    expect(result.rows).toMatchObject([
      { timestamp: 1_794_657_600_000_001, metadata: { nested: { a: [1] } } },
    ]);
    expect(result).toMatchObject({
      dataThrough: AT,
      clipped: ['retention'],
      ageSeconds: 0,
      cache: 'bypass',
      nextCursor: undefined,
    });
    expect(Math.abs(result.ranAt.getTime() - Date.now())).toBeLessThan(60_000);
  });

  test('an empty or undefined parameter counts as absent', async () => {
    const parameters = { project: 'alpha', function_id: '', interval: undefined };
    const { rows } = await connect().query('functions.invocation-stats', parameters);
    expect(rows).toMatchObject([{ count: 1, error_count: 0 }]);
  });

  test('a repeated query sends the ETag and returns the rows of the first response again', async () => {
    const seen: [string | undefined, number][] = [];
    const proxy = await startProxy(app.url, (request, status) =>
      seen.push([request.headers['if-none-match'] && 'etag', status]),
    );
    const client = connect({ url: proxy.url });
    const parameters = { project: 'alpha', interval: 'daily' } as const;
    const first = await client.query('usage.api-counts', parameters);
    (first.rows as unknown[]).length = 0; // a caller may change its rows
    const second = await client.query('usage.api-counts', parameters);
    expect(second).toMatchObject({ cache: 'hit', dataThrough: AT });
    expect(second.rows).toMatchObject([{ timestamp: '2026-11-14T00:00:00Z', total_rest_requests: 1 }]);
    expect(seen).toEqual([
      [undefined, 200],
      ['etag', 304],
    ]);
    await client.query('usage.api-counts', parameters, { forceRefresh: true });
    expect(seen.at(-1)).toEqual([undefined, 200]);
    await client.query('logs.all', { project: 'alpha' });
    await client.query('logs.all', { project: 'alpha' });
    expect(seen.at(-1)).toEqual([undefined, 200]); // the server forbids to keep it: no-store
    proxy.close();
  });

  test('the last responses are kept up to the limit in characters', async () => {
    const etags: boolean[] = [];
    const proxy = await startProxy(app.url, request => etags.push('if-none-match' in request.headers));
    const client = connect({ url: proxy.url, cacheCharacters: 700 });
    const query = (project: string) => client.query('usage.api-counts', { project, interval: 'daily' });
    for (const project of ['alpha', 'a', 'al', 'alp', 'alpha']) await query(project);
    expect(etags).toEqual([false, false, false, false, false]);
    await query('alpha');
    expect(etags.at(-1)).toBe(true);
    proxy.close();
  });

  test.each([
    ['logs.all', { project: '' }, { code: 'missing_parameter', status: 400, param: 'project' }],
    [
      'usage.api-counts',
      { project: '(', interval: 'daily' },
      { code: 'invalid_parameter', param: 'project' },
    ],
    ['no.such', {}, { code: 'not_found', status: 404, param: undefined }],
  ])('%s with %j throws a DendroError %j', async (name, parameters, expected) => {
    const client = createClient<AnyEndpoints>({ url: app.url, token: API_KEY });
    const error = await client.query(name, parameters).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DendroError);
    expect(error).toMatchObject({ name: 'DendroError', ...expected });
  });

  test('a wrong token throws unauthorized, and a token that no header can carry is refused at once', async () => {
    const client = connect({ token: 'wrong' });
    await expect(client.listEndpoints()).rejects.toMatchObject({ code: 'unauthorized', status: 401 });
    expect(() => connect({ token: 'ü' })).toThrow('only printable ASCII');
    expect(() => connect({ url: 'localhost' })).toThrow('url localhost is not a URL');
  });

  test('explain() and listEndpoints() return what the API returns', async () => {
    const client = connect();
    const { conditions } = await client.explain('logs.all', { project: 'alpha' });
    expect(conditions[0]).toEqual({ name: 'project', remaining: 1 });
    expect((await client.listEndpoints()).map(({ name }) => name)).toContain('test.sleep');
  });

  test('aborting cancels the request and throws the reason of the signal', async () => {
    const client = createClient<AnyEndpoints>({ url: app.url, token: API_KEY });
    const controller = new AbortController();
    const query = client.query('test.sleep', { milliseconds: '20000' }, { signal: controller.signal });
    setTimeout(() => controller.abort(new Error('enough')), 50);
    await expect(query).rejects.toThrow('enough');
    const timeout = { signal: AbortSignal.timeout(50) };
    await expect(client.query('test.sleep', { milliseconds: '20001' }, timeout)).rejects.toMatchObject({
      name: 'TimeoutError',
    });
  });
});

describe('the client and a server that fails', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });
  const serve = async (listener: RequestListener) => {
    const server = createServer(listener).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  /** Returns these statuses one after another, and 200 at the end. */
  const fail = async (failures: [number, Record<string, string>][]) => {
    let requests = 0;
    const url = await serve((_, response) => {
      const [status, headers] = failures[requests++] ?? [200, {}];
      const error = { code: status === 429 ? 'rate_limited' : 'unavailable', message: 'later' };
      response.writeHead(status, headers).end(JSON.stringify(status === 200 ? { result: [] } : { error }));
    });
    return { url, requests: () => requests };
  };
  const query = (
    options: Partial<Parameters<typeof createClient>[0]> & { url: string },
    signal?: AbortSignal,
  ) => createClient({ token: 'token', ...options }).query('logs.all', { project: 'a' }, { signal });

  test('429 and 503 are retried after the time in Retry-After', async () => {
    const { url, requests } = await fail([
      [429, { 'Retry-After': '0' }],
      [503, { 'Retry-After': new Date(0).toUTCString() }],
    ]);
    expect((await query({ url })).rows).toEqual([]);
    expect(requests()).toBe(3);
  });

  test('after the last retry the error is thrown, with Retry-After', async () => {
    const { url, requests } = await fail(Array(9).fill([503, { 'Retry-After': '0' }]));
    await expect(query({ url })).rejects.toMatchObject({
      code: 'unavailable',
      status: 503,
      retryAfterSeconds: 0,
    });
    expect(requests()).toBe(3);
    await expect(query({ url, retries: 0 })).rejects.toBeInstanceOf(DendroError);
    expect(requests()).toBe(4);
  });

  test.each<[number, Record<string, string>, object]>([
    [429, { 'Retry-After': '31' }, { code: 'rate_limited', retryAfterSeconds: 31 }],
    [500, {}, { status: 500 }],
  ])(
    'a server that asks for a long wait, or with another error, is not retried: %i',
    async (status, headers, error) => {
      const { url, requests } = await fail([[status, headers]]);
      await expect(query({ url })).rejects.toMatchObject(error);
      expect(requests()).toBe(1);
    },
  );

  test('aborting ends the wait before a retry', async () => {
    const { url, requests } = await fail([[503, { 'Retry-After': '30' }]]);
    const controller = new AbortController();
    const running = query({ url }, controller.signal);
    await expect.poll(requests).toBe(1);
    setTimeout(() => controller.abort(new Error('enough')), 50);
    await expect(running).rejects.toThrow('enough');
    expect(requests()).toBe(1);
  });

  test('an error page of a proxy throws unexpected, with its status', async () => {
    const url = await serve((_, response) => response.writeHead(502).end('<html>'));
    await expect(query({ url })).rejects.toMatchObject({ code: 'unexpected', status: 502 });
  });

  test.each(['<html>', 'null', '{}', '{"result":1}'])('a response of %s throws unreadable', async body => {
    const url = await serve((_, response) => response.end(body));
    await expect(query({ url })).rejects.toMatchObject({ code: 'unreadable', status: 200 });
  });

  test('a response that breaks off throws unreadable', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'Content-Length': '100' }).write('{"result":[');
      setTimeout(() => response.destroy(), 20);
    });
    await expect(query({ url })).rejects.toMatchObject({ code: 'unreadable', status: 200 });
  });

  test('no server throws unreachable, and a redirect is not followed', async () => {
    await expect(query({ url: 'http://127.0.0.1:1' })).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/^cannot reach http:.+: bad port/),
      status: undefined,
    });
    const url = await serve((_, response) =>
      response.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end(),
    );
    await expect(query({ url })).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('the header with the next cursor and a parser of numbers that a double cannot represent', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'Dendro-Next-Cursor': 'c1', 'Dendro-Clipped': 'time-limit, retention' });
      response.end('{"result":[{"metadata":{"id":12345678901234567890}}]}');
    });
    const exact = (text: string) => JSON.parse(text.replace(/(\d{17,})/g, '"$1"'));
    const result = await query({ url, parseJson: exact });
    expect(result).toMatchObject({
      nextCursor: 'c1',
      clipped: ['time-limit', 'retention'],
      cache: undefined,
    });
    expect(result.rows[0]?.metadata).toEqual({ id: '12345678901234567890' });
  });
});

/** Forwards requests, and reports each with the status of its response. */
async function startProxy(
  target: string,
  onRequest: (request: { headers: NodeJS.Dict<string | string[]> }, status: number) => void,
): Promise<{ url: string; close(): void }> {
  const server = createServer(async (request, response) => {
    const headers = Object.entries(request.headers).filter(
      ([name]) => !['host', 'connection'].includes(name),
    );
    const answer = await fetch(`${target}${request.url}`, {
      headers: { ...(Object.fromEntries(headers) as Record<string, string>), 'accept-encoding': 'identity' },
    });
    onRequest(request, answer.status);
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => server.close().closeAllConnections(),
  };
}
