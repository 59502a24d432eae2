// The public listener's routes, all of them reading. Each is checked in this order: path, method, token, rate,
// endpoint, scope, parameters, project pin.
import type { IncomingHttpHeaders } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { Catalog, Endpoint } from '../endpoint/catalog.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import { type EndpointDependencies, type EndpointRun, runEndpoint } from '../endpoint/run-endpoint.ts';
import type { ValidatedRequests } from '../endpoint/validated-requests.ts';
import type { Intake } from '../intake/intake.ts';
import type { StoreName } from '../store/store.ts';
import { allows, type Token } from '../token/token.ts';
import { chooseCoding } from './accept-encoding.ts';
import { type AuthDependencies, authenticate, identifyOptional } from './authenticate.ts';
import { describeEndpoint } from './catalog-response.ts';
import { consoleRoutes } from './console-files.ts';
import { chooseFormat } from './content-negotiation.ts';
import { missingScopeError } from './error-response.ts';
import { buildOpenApi } from './openapi.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import { resultResponse } from './result-response.ts';
import type { HttpRequest, Route } from './router.ts';

export interface Service extends EndpointDependencies, AuthDependencies {
  readonly validatedRequests: ValidatedRequests;
  readonly intake: Intake;
}

export interface PublicDependencies {
  readonly version: string;
  readonly storeName: StoreName;
  readonly catalog: Catalog;
  /** Undefined until the store is open, and again when the program stops. */
  readonly service: () => Service | undefined;
  readonly state: () => 'starting' | 'ok' | 'unavailable';
}

const READING = ['GET', 'HEAD'];

export function publicRoutes(parts: PublicDependencies): Route[] {
  return [
    { path: '/api/endpoints/query/*', methods: READING, handle: call => handleQuery(parts, call) },
    { path: '/api/endpoints', methods: READING, handle: call => handleCatalog(parts, call) },
    { path: '/openapi.json', methods: READING, handle: call => handleOpenApi(parts, call) },
    healthRoute(parts),
    ...consoleRoutes(),
  ];
}

export function healthRoute({ state, version, storeName }: PublicDependencies): Route {
  return {
    path: '/health',
    methods: READING,
    handle: () => {
      const status = state();
      const health = { status, version, store: storeName };
      return jsonResponse(status === 'ok' ? 200 : 503, health, { 'Cache-Control': 'no-store' });
    },
  };
}

/** Returns a promise only if the result is not cached: awaiting takes a noticeable part of the time of a cached hit. */
function handleQuery(
  dependencies: PublicDependencies,
  request: HttpRequest,
): HttpResponse | Promise<HttpResponse> {
  const service = requireService(dependencies);
  const { headers } = request.request;
  const token = authenticate(service, request.request);
  if (token instanceof Promise) return token;
  const endpoint = findEndpoint(dependencies.catalog, token, request.pathParameter);
  const encoding = {
    format: chooseFormat(request, headers.accept),
    coding: chooseCoding(headers['accept-encoding']),
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
    return run.then(async completed => toResponse(completed, await completed.value.encode(encoding)));
  const encoded = run.value.encode(encoding);
  return encoded instanceof Promise
    ? encoded.then(created => toResponse(run, created))
    : toResponse(run, encoded);
}

/** A token for some endpoints gets `forbidden` for every other name, known or not. */
function findEndpoint(catalog: Catalog, token: Token, idOrName: string): Endpoint {
  const endpoint = catalog.find(idOrName);
  if (endpoint === undefined && allows(token, 'query', idOrName))
    throw new DendroError('not_found', 'there is no such endpoint; /api/endpoints lists those there are');
  if (endpoint === undefined || !mayCall(token, endpoint)) throw missingScopeError();
  return endpoint;
}

function mayCall(token: Token, { definition }: Endpoint): boolean {
  return allows(token, 'query', definition.name) && (token.projects === undefined || definition.applies_pin);
}

async function handleCatalog(parts: PublicDependencies, { request }: HttpRequest): Promise<HttpResponse> {
  const token = await authenticate(requireService(parts), request);
  const callable = parts.catalog.endpoints.filter(endpoint => mayCall(token, endpoint));
  if (callable.length === 0) throw missingScopeError();
  return jsonResponse(200, { result: callable.map(describeEndpoint) }, { 'Cache-Control': 'no-store' });
}

/** Open to everyone: the built-in endpoints, and with a good token all that it may call. */
async function handleOpenApi(
  { version, catalog, service }: PublicDependencies,
  { request }: HttpRequest,
): Promise<HttpResponse> {
  const door = service();
  const token = door === undefined ? undefined : await identifyOptional(door, request);
  const shown = catalog.endpoints.filter(endpoint =>
    token === undefined ? endpoint.builtIn : mayCall(token, endpoint),
  );
  return jsonResponse(200, buildOpenApi(version, shown), {
    'Cache-Control': 'private, no-cache',
    Vary: 'X-API-KEY, Authorization',
  });
}

/** Checked before the token, so that a shipper or a dashboard is told to come back, never that its token is bad. */
export function requireService({ service, state }: PublicDependencies): Service {
  const ready = service();
  if (ready === undefined)
    throw new DendroError('unavailable', state() === 'starting' ? 'still starting' : 'stopping');
  return ready;
}

/** Common clients add no-cache by themselves when they revalidate, so with If-None-Match it is an ordinary call. */
function wantsFreshResult(headers: IncomingHttpHeaders): boolean {
  const cacheControl = headers['cache-control'];
  if (cacheControl === undefined || headers['if-none-match'] !== undefined) return false;
  return cacheControl
    .toLowerCase()
    .split(',')
    .some(directive => directive.trim() === 'no-cache');
}
