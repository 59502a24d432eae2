// The routes of the public listener. None changes state. The check order is: path, method, token, rate, endpoint, scope,
// parameters, project pin.
import type { IncomingHttpHeaders } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { Catalog, Endpoint } from '../endpoint/catalog.ts';
import type { Parameter } from '../endpoint/definition.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import { type EndpointDependencies, type EndpointRun, runEndpoint } from '../endpoint/run-endpoint.ts';
import type { ValidatedRequests } from '../endpoint/validated-requests.ts';
import type { Intake } from '../intake/intake.ts';
import type { StoreName } from '../store/store.ts';
import { allows, type Token } from '../token/token.ts';
import { type AuthDependencies, authenticate, authenticateOptional } from './authenticate.ts';
import { consoleRoutes } from './console-files.ts';
import { chooseCoding, chooseFormat } from './content-negotiation.ts';
import { missingScopeError } from './error-response.ts';
import { buildOpenApi } from './openapi.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import { resultResponse } from './result-response.ts';
import type { HttpRequest, Route } from './router.ts';

/** Everything that a request needs once the server is ready. */
export interface Service extends EndpointDependencies, AuthDependencies {
  readonly validatedRequests: ValidatedRequests;
  readonly intake: Intake;
}

export interface PublicDependencies {
  readonly version: string;
  readonly storeName: StoreName;
  readonly catalog: Catalog;
  /** Undefined while the server starts or stops. */
  readonly service: () => Service | undefined;
  readonly state: () => 'starting' | 'ok' | 'unavailable';
}

const READ_METHODS = ['GET', 'HEAD'];

export function publicRoutes(dependencies: PublicDependencies): Route[] {
  return [
    {
      path: '/api/endpoints/query/*',
      methods: READ_METHODS,
      handle: request => handleQuery(dependencies, request),
    },
    {
      path: '/api/endpoints',
      methods: READ_METHODS,
      handle: request => handleCatalog(dependencies, request),
    },
    { path: '/openapi.json', methods: READ_METHODS, handle: request => handleOpenApi(dependencies, request) },
    healthRoute(dependencies),
    ...consoleRoutes(),
  ];
}

export function healthRoute({ state, version, storeName }: PublicDependencies): Route {
  return {
    path: '/health',
    methods: READ_METHODS,
    handle: () => {
      const status = state();
      const health = { status, version, store: storeName };
      return jsonResponse(status === 'ok' ? 200 : 503, health, { 'Cache-Control': 'no-store' });
    },
  };
}

/** Returns a promise only if the result is not cached: awaiting takes a noticeable part of the time of a cache hit. */
function handleQuery(
  dependencies: PublicDependencies,
  request: HttpRequest,
): HttpResponse | Promise<HttpResponse> {
  const service = requireService(dependencies);
  const { headers } = request.raw;
  const token = authenticate(service, request.raw);
  if (token instanceof Promise) return token;
  const endpoint = findEndpoint(dependencies.catalog, token, request.pathParameter);
  const encoding = {
    format: chooseFormat(request, headers.accept),
    contentCoding: chooseCoding(headers['accept-encoding']),
    redacted: token.redact_pii === true,
  };
  const startedAt = performance.now();
  const validated = service.validatedRequests.validate(endpoint.definition, request, token.tier);
  const run = runEndpoint(service, endpoint, validated, {
    projects: token.projects,
    forceRefresh: wantsFreshResult(headers),
    request,
  });
  const toResponse = (completed: EndpointRun, encoded: EncodedResult) => {
    const tookMs = performance.now() - startedAt;
    const ifNoneMatch = headers['if-none-match'];
    return resultResponse(endpoint.definition, completed, encoding.format, encoded, ifNoneMatch, tookMs);
  };
  if (run instanceof Promise)
    return run.then(async completed => toResponse(completed, await completed.result.encode(encoding)));
  const encoded = run.result.encode(encoding);
  return encoded instanceof Promise
    ? encoded.then(created => toResponse(run, created))
    : toResponse(run, encoded);
}

/** A token that is limited to some endpoints gets `forbidden` for every other name, whether that endpoint exists or not. */
function findEndpoint(catalog: Catalog, token: Token, idOrName: string): Endpoint {
  const endpoint = catalog.find(idOrName);
  if (endpoint === undefined && allows(token, 'query', idOrName))
    throw new DendroError('not_found', 'unknown endpoint; /api/endpoints lists the available ones');
  if (endpoint === undefined || !mayCall(token, endpoint)) throw missingScopeError();
  return endpoint;
}

function mayCall(token: Token, { definition }: Endpoint): boolean {
  return allows(token, 'query', definition.name) && (token.projects === undefined || definition.applies_pin);
}

async function handleCatalog(dependencies: PublicDependencies, { raw }: HttpRequest): Promise<HttpResponse> {
  const token = await authenticate(requireService(dependencies), raw);
  const callable = dependencies.catalog.endpoints.filter(endpoint => mayCall(token, endpoint));
  if (callable.length === 0) throw missingScopeError();
  return jsonResponse(200, { result: callable.map(describeEndpoint) }, { 'Cache-Control': 'no-store' });
}

function describeEndpoint({ definition }: Endpoint): Record<string, unknown> {
  const { id, name, description, max_rows, cache, parameters, columns } = definition;
  return {
    id,
    name,
    description,
    max_rows,
    cache: cache === 'none' ? { lifetime_seconds: 0, warming_seconds: null } : cache,
    sandboxing: false,
    parameters: Object.entries(parameters).map(([key, rule]) => describeParameter(key, rule)),
    columns: Object.entries(columns).map(([key, column]) => ({ name: key, ...column })),
  };
}

function describeParameter(name: string, rule: Parameter): Record<string, unknown> {
  const { type, required, description } = rule;
  if (rule.type !== 'choice') return { name, type, required, description };
  return {
    name,
    type,
    required,
    description,
    choices: Object.keys(rule.choices),
    choice_values: rule.choices,
    fallback: rule.fallback ?? null,
  };
}

/** Without a token: the built-in endpoints. With a valid token: every endpoint that it may call. */
async function handleOpenApi(
  { version, catalog, service }: PublicDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
  const ready = service();
  const token = ready === undefined ? undefined : await authenticateOptional(ready, raw);
  const shown = catalog.endpoints.filter(endpoint =>
    token === undefined ? endpoint.builtIn : mayCall(token, endpoint),
  );
  return jsonResponse(200, buildOpenApi(version, shown), {
    'Cache-Control': 'private, no-cache',
    Vary: 'X-API-KEY, Authorization',
  });
}

/** Called before authentication: while starting, a client gets 503 and retries. A 401 would make shippers drop their records. */
export function requireService({ service, state }: PublicDependencies): Service {
  const ready = service();
  if (ready === undefined)
    throw new DendroError(
      'unavailable',
      state() === 'starting' ? 'the server is starting' : 'the server is stopping',
    );
  return ready;
}

/** Common HTTP clients add no-cache themselves when they revalidate, so with If-None-Match it does not force a refresh. */
function wantsFreshResult(headers: IncomingHttpHeaders): boolean {
  const cacheControl = headers['cache-control'];
  if (cacheControl === undefined || headers['if-none-match'] !== undefined) return false;
  return cacheControl
    .toLowerCase()
    .split(',')
    .some(directive => directive.trim() === 'no-cache');
}
