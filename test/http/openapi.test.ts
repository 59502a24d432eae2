import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { STATUS_BY_CODE } from '../../src/http/error-response.ts';
import { type InternalDependencies, internalRoutes } from '../../src/http/internal-routes.ts';
import { publicRoutes } from '../../src/http/public-routes.ts';
import { readVersion } from '../../src/system/version.ts';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { BUILT_IN, type CustomEndpoints, SLEEP, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { sendRaw } from '../support/raw-http.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

interface Operation {
  readonly operationId?: string;
  readonly security?: Record<string, unknown>[];
  readonly parameters?: { name: string; in: string; required?: boolean; schema: Record<string, unknown> }[];
  readonly responses: Record<
    string,
    { content?: Record<string, { schema: Schema }>; headers?: Record<string, unknown> }
  >;
}

interface Schema {
  readonly required?: string[];
  readonly properties?: Record<string, Schema & { type?: string | string[] }>;
  readonly items?: Schema;
  readonly enum?: string[];
}

interface Document {
  readonly openapi: string;
  readonly info: { title: string; version: string };
  readonly security: Record<string, unknown>[];
  readonly servers: unknown[];
  readonly paths: Record<string, Record<string, Operation> & { servers?: never }>;
  readonly components: { schemas: Record<string, Schema>; securitySchemes: Record<string, unknown> };
}

const BUILT_IN_NAMES = ['functions.invocation-stats', 'logs.all', 'usage.api-counts'];

describe('GET /openapi.json', () => {
  let own: CustomEndpoints;
  let tokens: TestTokens<'logs' | 'machine'>;
  let app: TestApp;
  let document: Document;
  beforeAll(async () => {
    own = writeEndpointFolders({ sleep: SLEEP });
    tokens = await createTokens({ logs: { scopes: ['query:logs.all'] }, machine: { scopes: ['ingest'] } });
    app = await startTestApp({
      endpointFolders: { builtIn: BUILT_IN, custom: own.folder },
      tokensFile: tokens.file,
    });
    document = await read({ 'X-API-KEY': API_KEY });
  });
  afterAll(async () => {
    await app.close();
    own.remove();
    tokens.remove();
  });

  const read = async (headers: Record<string, string>): Promise<Document> => {
    const { status, text } = await app.get('/openapi.json', { headers });
    expect(status).toBe(200);
    return JSON.parse(text);
  };

  const operationOf = (path: string): Operation => {
    const operation = document.paths[path]?.['get'];
    if (operation === undefined) throw new Error(`${path} is not described`);
    return operation;
  };

  const endpointsIn = ({ paths }: Document) =>
    Object.keys(paths)
      .filter(path => path.startsWith('/api/endpoints/query/'))
      .map(path => path.slice('/api/endpoints/query/'.length));

  test('is an OpenAPI 3.1 document with the version of the program', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Dendro', version: readVersion() });
  });

  test('an independent validator accepts the document, with and without a token', async () => {
    for (const headers of [{ 'X-API-KEY': API_KEY }, {}])
      expect(await new Validator().validate({ ...(await read(headers)) })).toEqual({ valid: true });
    const broken = { ...document, paths: { '/x': { get: { responses: { 200: {} } } } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  test('names the public listener as its server, and the internal one for the routes that only that has', () => {
    expect(document.servers).toMatchObject([{ url: '/' }]);
    const internal = Object.entries(document.paths).filter(([, { servers }]) => servers !== undefined);
    expect(internal.map(([path]) => path)).toEqual([
      '/api/logs',
      '/v1/logs',
      '/api/admin/erase',
      '/api/admin/backup',
      '/metrics',
    ]);
  });

  test('has every route of both listeners, with its methods', () => {
    const dependencies = { catalog: { endpoints: [] } } as unknown as InternalDependencies;
    const routes = [...publicRoutes(dependencies), ...internalRoutes(dependencies)]
      .filter(({ path }) => path !== '/' && !path.startsWith('/assets/'))
      .flatMap(({ path, methods }) =>
        methods
          .filter(method => method !== 'HEAD') // like GET
          .map(method => `${method} ${path.replace('*', 'logs.all')}`),
      );
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item)
        .filter(key => key !== 'servers')
        .map(method => `${method.toUpperCase()} ${path}`),
    );
    expect(routes.filter(route => !described.includes(route))).toEqual([]);
    expect(described).toContain('POST /api/logs');
  });

  test('real responses have a documented status, and its headers', async () => {
    const query = '/api/endpoints/query/logs.all';
    const calls: [string, string, RequestInit][] = [
      [query, `${query}?project=alpha`, { headers: { 'X-API-KEY': API_KEY } }],
      [query, query, { headers: { 'X-API-KEY': API_KEY } }],
      [query, query, {}],
      [query, `${query}?project=alpha`, { headers: { 'X-API-KEY': API_KEY, Accept: 'image/png' } }],
      [query, `${query}?project=alpha`, { headers: { 'X-API-KEY': tokens.secrets.machine } }],
      [query, query, { method: 'POST' }],
      [query, `${query}?x=${'x'.repeat(9000)}`, {}],
      ['/health', '/health', {}],
    ];
    for (const [path, target, init] of calls) {
      const { status, headers } = await fetch(`${app.url}${target}`, init);
      const response = operationOf(path).responses[status];
      expect(response, `${path} returned ${status}`).toBeDefined();
      for (const header of ['Retry-After', 'WWW-Authenticate', 'Allow', 'ETag', 'Dendro-Request-Id'])
        if (headers.has(header) && status !== 503)
          expect([header, response?.headers ?? {}]).toEqual([
            header,
            expect.objectContaining({ [header]: expect.anything() }),
          ]);
    }
    const sent = await fetch(`${app.internalUrl}/api/logs?source_name=edge`, {
      method: 'POST',
      headers: { 'X-API-KEY': API_KEY },
      body: '[{"message":"no project"}]',
    });
    expect(sent.status).toBe(422);
    expect(document.paths['/api/logs']?.['post']?.responses).toHaveProperty('422');
  });

  test('a request without the header Host gets a documented 400 on every route', async () => {
    for (const [path, { servers, ...methods }] of Object.entries(document.paths))
      for (const [method, { responses }] of Object.entries<Operation>(methods)) {
        const request = `${method.toUpperCase()} ${path} HTTP/1.1\r\n\r\n`;
        const { status } = await sendRaw(servers === undefined ? app.url : app.internalUrl, request);
        expect(status).toBe(400);
        expect(Object.keys(responses), `${method} ${path}`).toContain('400');
      }
  });

  test('every reference resolves', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g)].map(
      match => match[1] ?? '',
    );
    expect(references.length).toBeGreaterThan(0);
    for (const reference of references) {
      expect(reference).toMatch(/^#\//);
      const found = reference
        .slice(2)
        .split('/')
        .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
      expect(found, `${reference} leads nowhere`).toBeDefined();
    }
  });

  test('every security requirement names a defined scheme', () => {
    const requirements = [
      document.security,
      ...operations().map(operation => operation.security ?? []),
    ].flat();
    for (const name of requirements.flatMap(requirement => Object.keys(requirement)))
      expect(Object.keys(document.components.securitySchemes)).toContain(name);
    expect(document.security.length).toBeGreaterThan(0);
  });

  const operations = () =>
    Object.values(document.paths).flatMap(({ servers: _, ...methods }) => Object.values(methods));

  test('operation ids are unique, and every operation has responses', () => {
    const ids = operations().flatMap(({ operationId }) => (operationId === undefined ? [] : [operationId]));
    expect(new Set(ids).size).toBe(ids.length);
    for (const { responses } of operations())
      for (const [status, response] of Object.entries(responses)) {
        expect(status).toMatch(/^[2-5]\d\d$/);
        expect(response).toHaveProperty('description');
      }
  });

  test.each(['/api/endpoints', '/health', '/openapi.json'])('describes %s', path => {
    expect(operationOf(path).responses).toHaveProperty('200');
  });

  test.each(['/health', '/openapi.json'])('%s requires no token', path => {
    expect(operationOf(path).security).toEqual([]);
  });

  test.each([...BUILT_IN_NAMES, 'test.sleep'])(
    'describes %s with the parameters of the catalog',
    async name => {
      const { rows } = await app.get('/api/endpoints');
      const entry = rows.find(row => row['name'] === name) as {
        parameters: { name: string; required: boolean }[];
        columns: { name: string }[];
      };
      const { parameters = [], responses } = operationOf(`/api/endpoints/query/${name}`);
      expect(
        parameters.map(({ name: parameter, in: place, required }) => [parameter, place, required ?? false]),
      ).toEqual([
        ...entry.parameters.map(parameter => [parameter.name, 'query', parameter.required]),
        ['format', 'query', false],
        ['timestamps', 'query', false],
      ]);
      const json = responses['200']?.content?.['application/json; charset=utf-8']?.schema;
      const row = json?.properties?.['result']?.items;
      expect(row?.required).toEqual(entry.columns.map(column => column.name));
      expect(Object.keys(row?.properties ?? {})).toEqual(row?.required);
      for (const status of [304, 400, 401, 403, 404, 405, 406, 408, 414, 429, 431, 500, 503, 504])
        expect(responses).toHaveProperty(String(status));
    },
  );

  test.each(BUILT_IN_NAMES)('describes the explanation of %s with the same parameters', async name => {
    const { parameters = [], responses } = operationOf(`/api/endpoints/explain/${name}`);
    const queryParameters = operationOf(`/api/endpoints/query/${name}`).parameters ?? [];
    expect(parameters).toEqual(
      queryParameters.filter(parameter => !['format', 'timestamps'].includes(parameter.name)),
    );
    const { required } = document.components.schemas['Explanation'] ?? {};
    const { text } = await app.get(`/api/endpoints/explain/${name}?project=alpha&interval=daily`);
    expect(Object.keys(JSON.parse(text).result)).toEqual(required);
    for (const status of ['200', '400', '401', '403', '404', '503', '504'])
      expect(responses).toHaveProperty(status);
  });

  test('describes no explanation of an endpoint without explain SQL', () => {
    expect(document.paths).not.toHaveProperty(['/api/endpoints/explain/test.sleep']);
  });

  test('lists the allowed values of a choice as enum, or as examples if it has a fallback', () => {
    const schemaOf = (name: string, parameter: string) =>
      operationOf(`/api/endpoints/query/${name}`).parameters?.find(({ name: found }) => found === parameter)
        ?.schema;
    expect(schemaOf('usage.api-counts', 'interval')).toMatchObject({ enum: ['minutely', 'hourly', 'daily'] });
    expect(schemaOf('logs.all', 'project_tier')).not.toHaveProperty('enum');
    expect(schemaOf('logs.all', 'format')).toMatchObject({ enum: ['json', 'ndjson', 'csv', 'csv-raw'] });
  });

  test('real rows match the documented types', async () => {
    const at = '2026-11-14T12:00:00Z';
    await app.append('edge', [edgeRecord({ at, metadata: { a: 1 } })]);
    await app.append('function_edge', [functionEdgeRecord({ at })]);
    for (const name of BUILT_IN_NAMES) {
      const { rows } = await app.query(name, { project: 'alpha', interval: 'daily' });
      const schema = operationOf(`/api/endpoints/query/${name}`).responses['200']?.content?.[
        'application/json; charset=utf-8'
      ]?.schema.properties?.['result']?.items?.properties;
      expect(rows.length).toBeGreaterThan(0);
      for (const [key, value] of Object.entries(rows[0] ?? {}))
        expect([schema?.[key]?.type].flat(), `${name}.${key}`).toContain(typeOf(value, schema?.[key]?.type));
    }
  });

  test('the error schema has every error code and no other', () => {
    const error = document.components.schemas['Error']?.properties?.['error'];
    expect(error?.properties?.['code']?.enum?.toSorted()).toEqual(Object.keys(STATUS_BY_CODE).toSorted());
    expect(error?.required).toEqual(['code', 'message']);
  });

  test('without a valid token it has only the built-in endpoints', async () => {
    for (const headers of [{}, { 'X-API-KEY': 'wrong' }, { 'X-API-KEY': '' }])
      expect(endpointsIn(await read(headers))).toEqual(BUILT_IN_NAMES);
  });

  test('with a token it has the endpoints that the token may call', async () => {
    expect(endpointsIn(document)).toEqual([...BUILT_IN_NAMES, 'test.sleep']);
    expect(endpointsIn(await read({ 'X-API-KEY': tokens.secrets.logs }))).toEqual(['logs.all']);
    expect(endpointsIn(await read({ Authorization: `Bearer ${tokens.secrets.machine}` }))).toEqual([]);
  });
});

/** The JSON Schema type of a value; a whole number is an integer if the schema says so. */
function typeOf(value: unknown, promised: string | string[] | undefined): string {
  if (value === null) return 'null';
  return typeof value === 'number' && Number.isInteger(value) && [promised].flat().includes('integer')
    ? 'integer'
    : typeof value;
}
