import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, describe, expect, test } from 'vitest';
import { RESULT_FORMATS } from '../../src/endpoint/encode-rows.ts';
import { STATUS_BY_CODE } from '../../src/http/error-response.ts';
import type { HttpRequest } from '../../src/http/router.ts';
import { internalRoutes, publicRoutes } from '../../src/http/routes.ts';
import type { RouteDependencies } from '../../src/http/serving.ts';
import { ACCEPTED_NAMES } from '../../src/logs/source-name.ts';
import { readVersion } from '../../src/system/version.ts';
import { API_KEY, startTestApp } from '../support/app.ts';
import { BUILT_IN, SLEEP } from '../support/custom-endpoints.ts';
import { findFreePort } from '../support/process.ts';
import { sendRaw } from '../support/raw-http.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp, useEndpoints, useTokens } from '../support/use-app.ts';

interface Operation {
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
  readonly operationId: string;
  readonly security?: unknown[];
  readonly parameters: { name: string; in: string; required?: boolean; schema: { enum?: string[] } }[];
  readonly responses: Record<string, { content?: Record<string, { schema: Schema }>; headers?: object }>;
}

interface Schema {
  readonly type?: string | string[];
  readonly required?: string[];
  readonly properties?: Record<string, Schema>;
  readonly items?: Schema;
  readonly enum?: string[];
}

interface Document {
  readonly info: object;
  readonly paths: Record<string, Record<string, Operation> & { servers?: never }>;
  readonly components: { schemas: Record<string, Schema> };
}

const BUILT_IN_NAMES = ['functions.invocation-stats', 'logs.all', 'usage.api-counts'];

describe('GET /openapi.json', () => {
  let document: Document;
  const own = useEndpoints({ sleep: SLEEP });
  const tokens = useTokens({ logs: { scopes: ['query:logs.all'] }, machine: { scopes: ['ingest'] } });
  const app = useApp({
    endpointFolders: { builtIn: BUILT_IN, custom: own.folder },
    tokensFile: tokens.file,
  });
  beforeAll(async () => {
    document = await read({ 'X-API-KEY': API_KEY });
  });

  const read = async (headers: Record<string, string>): Promise<Document> => {
    const { status, text } = await app.get('/openapi.json', { headers });
    expect(status).toBe(200);
    return JSON.parse(text);
  };

  const operationOf = (path: string, method = 'get'): Operation => {
    const operation = document.paths[path]?.[method];
    if (operation === undefined) throw new Error(`${path} is not described`);
    return operation;
  };

  const operations = () =>
    Object.entries(document.paths).flatMap(([path, { servers, ...methods }]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        line: `${method.toUpperCase()} ${path}`,
        url: servers === undefined ? app.url : app.internalUrl,
      })),
    );

  const endpointsIn = ({ paths }: Document) =>
    Object.keys(paths)
      .filter(path => path.startsWith('/api/endpoints/query/'))
      .map(path => path.slice('/api/endpoints/query/'.length));

  const rowSchemaOf = (name: string) =>
    operationOf(`/api/endpoints/query/${name}`).responses['200']?.content?.['application/json']?.schema
      .properties?.['result']?.items;

  test('an independent validator accepts the document, with and without a token', async () => {
    for (const headers of [{ 'X-API-KEY': API_KEY }, {}])
      expect(await new Validator().validate({ ...(await read(headers)) })).toEqual({ valid: true });
    const broken = { ...document, paths: { '/x': { get: { responses: { 200: {} } } } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
    expect(document.info).toMatchObject({ version: readVersion() });
    const ids = operations().map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]*)"/g)];
    expect(references.length).toBeGreaterThan(0);
    for (const [, reference = ''] of references) {
      const follow = (value: unknown, key: string) => (value as Record<string, unknown> | undefined)?.[key];
      expect(
        reference.split('/').reduce<unknown>(follow, document),
        `${reference} leads nowhere`,
      ).toBeDefined();
    }
  });

  test('has every route with its methods, and the server of those of the internal listener', () => {
    const dependencies = { catalog: { endpoints: [] } } as unknown as RouteDependencies;
    const listRoutes = (routes: ReturnType<typeof publicRoutes>) =>
      routes
        .filter(({ path }) => path !== '/' && !path.startsWith('/assets/'))
        .flatMap(({ path, methods }) =>
          methods.filter(name => name !== 'HEAD').map(name => `${name} ${path.replace('*', 'logs.all')}`),
        );
    const onPublic = listRoutes(publicRoutes(dependencies));
    const onInternal = listRoutes(internalRoutes(dependencies)).filter(route => !onPublic.includes(route));
    const described = (url: string) =>
      operations().flatMap(({ line, url: its }) => (its === url ? line : []));
    expect(described(app.url)).toEqual(expect.arrayContaining(onPublic));
    expect(described(app.internalUrl).toSorted()).toEqual(onInternal.toSorted());
    const open = operations().filter(({ security }) => security?.length === 0); // those that need no token
    const paths = ['/health', '/health/ready', '/health/live', '/openapi.json'];
    expect(open.map(({ line }) => line)).toEqual(paths.map(path => `GET ${path}`));
  });

  test('has the URL of the internal listener for a valid token only', async () => {
    const urlOf = ({ paths }: Document) =>
      (paths['/api/logs'] as { servers?: { variables: { internal_url: { default: string } } }[] })
        .servers?.[0]?.variables.internal_url.default;
    expect(urlOf(document)).toBe(app.internalUrl);
    for (const headers of [{}, { 'X-API-KEY': 'wrong' }])
      expect(urlOf(await read(headers))).toBe('http://127.0.0.1:4001');
    // On all addresses, it has the host of the request; in one listener with the public one, it is relative.
    const anywhere = await startTestApp({ internalAddress: { host: '0.0.0.0', port: 0 } });
    const named = await startTestApp({ internalAddress: { host: 'localhost', port: 0 } });
    const [{ port }, freePort] = [new URL(anywhere.internalUrl), await findFreePort()];
    const address = { host: '127.0.0.1', port: freePort };
    const shared = await startTestApp({ publicAddress: address, internalAddress: address });
    try {
      const target = `GET /openapi.json HTTP/1.1\r\nX-API-KEY: ${API_KEY}\r\nHost: `;
      for (const [host, url] of [
        ['logs.example.com:80', `http://logs.example.com:${port}`],
        ['[::1]:4000', `http://[::1]:${port}`],
        ['%', `http://127.0.0.1:${port}`],
      ])
        expect(urlOf(JSON.parse((await sendRaw(anywhere.url, `${target}${host}\r\n\r\n`)).body))).toBe(url);
      expect(urlOf(JSON.parse((await named.get('/openapi.json')).text))).toMatch(/^http:\/\/localhost:\d+$/);
      expect(urlOf(JSON.parse((await shared.get('/openapi.json')).text))).toBe('/');
    } finally {
      await anywhere.close();
      await shared.close();
      await named.close();
    }
  });

  test('all responses without a token share one copy of the document, because they may wait in the auth throttle', async () => {
    const dependencies = { version: '1', catalog: { endpoints: [] }, serving: () => undefined };
    const routes = publicRoutes(dependencies as unknown as RouteDependencies);
    const route = routes.find(({ path }) => path === '/openapi.json');
    const [first, second] = [await route?.handle({} as HttpRequest), await route?.handle({} as HttpRequest)];
    expect(second).not.toBe(first);
    expect(second?.body).toBe(first?.body);
    expect(first?.body).toBeInstanceOf(Buffer); // texts of equal content would be `toBe` too
  });

  test('real responses have a documented status, and its headers', async () => {
    const query = '/api/endpoints/query/logs.all';
    const calls: [string, RequestInit][] = [
      [`${query}?project=alpha`, { headers: { 'X-API-KEY': API_KEY } }],
      [query, { headers: { 'X-API-KEY': API_KEY } }],
      [query, {}],
      [`${query}?project=alpha`, { headers: { 'X-API-KEY': API_KEY, Accept: 'image/png' } }],
      [`${query}?project=alpha`, { headers: { 'X-API-KEY': tokens.secrets.machine } }],
      [query, { method: 'POST' }],
      [`${query}?x=${'x'.repeat(9000)}`, {}],
      ['/health', {}],
    ];
    for (const [target, init] of calls) {
      const { status, headers } = await fetch(`${app.url}${target}`, init);
      const response = operationOf(target.split('?', 1)[0] ?? '').responses[status];
      expect(response, `${target} returned ${status}`).toBeDefined();
      for (const header of ['Retry-After', 'WWW-Authenticate', 'Allow', 'ETag', 'Dendro-Request-Id'])
        if (headers.has(header)) expect(response?.headers).toHaveProperty(header);
    }
  });

  test('a request without the header Host gets a documented 400 on every route', async () => {
    for (const { line, url, responses } of operations()) {
      expect((await sendRaw(url, `${line} HTTP/1.1\r\n\r\n`)).status).toBe(400);
      expect(Object.keys(responses), line).toContain('400');
    }
  });

  test('describes every endpoint with the parameters and columns of the catalog', async () => {
    const { rows } = await app.get('/api/endpoints');
    expect(rows.map(({ name }) => name)).toEqual([...BUILT_IN_NAMES, 'test.sleep']);
    for (const entry of rows as {
      name: string;
      parameters: Operation['parameters'];
      columns: Operation[];
    }[]) {
      const { parameters, responses } = operationOf(`/api/endpoints/query/${entry.name}`);
      const described = parameters.map(({ name, in: place, required }) => [name, place, required]);
      const declared = entry.parameters.map(({ name, required }) => [name, 'query', required]);
      const general = [
        ['format', 'query', undefined],
        ['timestamps', 'query', undefined],
      ];
      expect(described).toEqual([...declared, ...general]);
      const columns = (entry.columns as unknown as { name: string }[]).map(({ name }) => name);
      expect(rowSchemaOf(entry.name)?.required).toEqual(columns);
      expect(Object.keys(rowSchemaOf(entry.name)?.properties ?? {})).toEqual(columns);
      for (const status of [304, 400, 401, 403, 404, 405, 406, 408, 414, 429, 431, 500, 503, 504])
        expect(responses).toHaveProperty(String(status));
      const byPost = operationOf(`/api/endpoints/query/${entry.name}`, 'post');
      for (const { schema } of Object.values(byPost.requestBody?.content ?? {})) {
        expect(Object.keys(schema.properties ?? {})).toEqual(parameters.map(({ name }) => name));
        expect(schema.required).toEqual(declared.flatMap(([name, , required]) => (required ? name : [])));
      }
      expect(byPost.responses['200']).toEqual(responses['200']);
      for (const status of [413, 415]) expect(byPost.responses).toHaveProperty(String(status));
    }
  });

  test('describes an explanation with the same parameters, if the endpoint has one', async () => {
    for (const name of BUILT_IN_NAMES) {
      const { parameters, responses } = operationOf(`/api/endpoints/explain/${name}`);
      expect(parameters).toEqual(operationOf(`/api/endpoints/query/${name}`).parameters.slice(0, -2));
      const { text } = await app.get(`/api/endpoints/explain/${name}?project=alpha&interval=daily`);
      const { required } = document.components.schemas['Explanation'] ?? {};
      expect(Object.keys(JSON.parse(text).result)).toEqual(required);
      for (const status of [200, 400, 401, 403, 404, 503, 504]) expect(responses).toHaveProperty(`${status}`);
    }
    expect(document.paths).not.toHaveProperty(['/api/endpoints/explain/test.sleep']);
  });

  test('lists the same values as the program', () => {
    const valuesOf = ({ parameters }: Operation, parameter: string) =>
      parameters.find(({ name }) => name === parameter)?.schema.enum;
    const query = (name: string) => operationOf(`/api/endpoints/query/${name}`);
    expect(valuesOf(query('usage.api-counts'), 'interval')).toEqual(['minutely', 'hourly', 'daily']);
    expect(valuesOf(query('logs.all'), 'project_tier')).toBeUndefined(); // it has a fallback
    const [pattern] = query('usage.api-counts').parameters;
    expect(pattern).toMatchObject({ name: 'project', schema: { format: 'regex' } });
    expect(valuesOf(query('logs.all'), 'format')).toEqual(RESULT_FORMATS);
    expect(valuesOf(operationOf('/api/logs', 'post'), 'source_name')).toEqual(ACCEPTED_NAMES);
    const error = document.components.schemas['Error']?.properties?.['error'];
    expect(error?.properties?.['code']?.enum?.toSorted()).toEqual(Object.keys(STATUS_BY_CODE).toSorted());
  });

  test('real rows match the documented types', async () => {
    const at = '2026-11-14T12:00:00Z';
    await app.append('edge', [edgeRecord({ at, metadata: { a: 1 } })]);
    await app.append('function_edge', [functionEdgeRecord({ at })]);
    for (const name of BUILT_IN_NAMES) {
      const { rows } = await app.query(name, { project: 'alpha', interval: 'daily' });
      expect(rows.length).toBeGreaterThan(0);
      for (const [key, value] of Object.entries(rows[0] ?? {})) {
        const types = [rowSchemaOf(name)?.properties?.[key]?.type].flat();
        const type = value === null ? 'null' : typeof value;
        const isInteger = Number.isInteger(value) && types.includes('integer');
        expect(types, `${name}.${key}`).toContain(isInteger ? 'integer' : type);
      }
    }
  });

  test('has the endpoints that the token may call, and without a valid token the built-in ones', async () => {
    for (const headers of [{}, { 'X-API-KEY': 'wrong' }, { 'X-API-KEY': '' }])
      expect(endpointsIn(await read(headers))).toEqual(BUILT_IN_NAMES);
    expect(endpointsIn(document)).toEqual([...BUILT_IN_NAMES, 'test.sleep']);
    expect(endpointsIn(await read({ 'X-API-KEY': tokens.secrets.logs }))).toEqual(['logs.all']);
    expect(endpointsIn(await read({ Authorization: `Bearer ${tokens.secrets.machine}` }))).toEqual([]);
  });
});
