// The routes of the public listener. They change no data. Checks run in this order: path, method, token, rate limit, scope,
// endpoint, parameters, and the projects that the token is pinned to.
import type { IncomingHttpHeaders } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { Catalog, Endpoint } from '../endpoint/catalog.ts';
import { toCatalogEntry } from '../endpoint/catalog-entry.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import { explainEndpoint, requireExplainQuery } from '../endpoint/explain.ts';
import { type EndpointRun, runEndpoint } from '../endpoint/run-endpoint.ts';
import { validateParameters } from '../endpoint/validated-requests.ts';
import { allows, type Token } from '../token/token.ts';
import { authenticate, findToken } from './authenticate.ts';
import { consoleRoutes } from './console-files.ts';
import { chooseCoding, chooseFormat, chooseIsoTimestamps } from './content-negotiation.ts';
import { missingScopeError } from './error-response.ts';
import { healthRoutes } from './health-routes.ts';
import { buildOpenApi } from './openapi.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import { resultResponse } from './result-response.ts';
import { type RouteDependencies, requireServing } from './route-dependencies.ts';
import type { HttpRequest, Route } from './router.ts';

const READ_METHODS = ['GET', 'HEAD'];

export function publicRoutes(dependencies: RouteDependencies): Route[] {
  return [
    {
      path: '/api/endpoints/query/*',
      methods: READ_METHODS,
      handle: request => handleQuery(dependencies, request),
    },
    {
      path: '/api/endpoints/explain/*',
      methods: READ_METHODS,
      handle: request => handleExplain(dependencies, request),
    },
    {
      path: '/api/endpoints',
      methods: READ_METHODS,
      handle: request => handleCatalog(dependencies, request),
    },
    { path: '/openapi.json', methods: READ_METHODS, handle: request => handleOpenApi(dependencies, request) },
    ...healthRoutes(dependencies),
    ...consoleRoutes(),
  ];
}

/**
 * If all rows of a result together are larger than this, their memory is reserved in `unsentResponses`. For smaller results it is
 * not, so that a cache hit can respond synchronously.
 */
const MAX_SMALL_RESULT_BYTES = 256 * 1024;

/**
 * Returns no promise for a cached result that is small and already encoded: awaiting takes a noticeable part of the time of a
 * cache hit.
 */
function handleQuery(
  dependencies: RouteDependencies,
  request: HttpRequest,
): HttpResponse | Promise<HttpResponse> {
  const serving = requireServing(dependencies);
  const { headers } = request.raw;
  const token = authenticate(serving, request.raw);
  const endpoint = findEndpoint(dependencies.catalog, token, request.pathParameter);
  request.endpoint = endpoint.definition.name;
  const representation = {
    format: chooseFormat(request, headers.accept),
    isoTimestamps: chooseIsoTimestamps(request),
    contentCoding: chooseCoding(headers['accept-encoding']),
    redacted: token.redact_pii === true,
  };
  const validated = serving.validatedRequests.validate(endpoint.definition, request, token.tier);
  const run = runEndpoint(serving, endpoint, validated, {
    projects: token.projects,
    tokenName: token.name,
    forceRefresh: isRefreshForced(headers),
    request,
    caller: token.sha256,
    beforeLoad: serving.unsentResponses.requireRoom,
  });
  const toResponse = (completed: EndpointRun, encoded: EncodedResult) => {
    request.outcome = completed.outcome;
    return resultResponse({
      definition: endpoint.definition,
      run: completed,
      format: representation.format,
      encoded,
      ifNoneMatch: headers['if-none-match'],
      tookMs: performance.now() - request.startedAt,
      caller: token.sha256,
    });
  };
  const respond = (completed: EndpointRun) => {
    if (completed.result.rowBytes > MAX_SMALL_RESULT_BYTES) return respondWithLargeResult(completed);
    const encoded = completed.result.encode(representation);
    return encoded instanceof Promise
      ? encoded.then(bytes => toResponse(completed, bytes))
      : toResponse(completed, encoded);
  };
  /** Reserves the memory of the rows until they are encoded, so that many large results at once cannot take all memory. */
  const respondWithLargeResult = async (completed: EndpointRun) => {
    const release = serving.unsentResponses.reserve(token.sha256, completed.result.rowBytes);
    try {
      return toResponse(completed, await completed.result.encode(representation));
    } finally {
      release();
    }
  };
  return run instanceof Promise ? run.then(respond) : respond(run);
}

/** An explanation is always JSON, but wrong values of `format` and `timestamps` are errors, as in a query. */
async function handleExplain(dependencies: RouteDependencies, request: HttpRequest): Promise<HttpResponse> {
  const serving = requireServing(dependencies);
  const token = authenticate(serving, request.raw);
  const endpoint = findEndpoint(dependencies.catalog, token, request.pathParameter);
  request.endpoint = endpoint.definition.name;
  requireExplainQuery(endpoint);
  chooseFormat(request, undefined);
  chooseIsoTimestamps(request);
  const validated = validateParameters(endpoint.definition, request.parameters, token.tier);
  const { projects, name: tokenName } = token;
  const result = await explainEndpoint(serving, endpoint, validated, { projects, tokenName, request });
  request.outcome = 'bypass';
  return jsonResponse(200, { result }, { 'Cache-Control': 'no-store' });
}

/** A token that is limited to some endpoints gets `forbidden` for every other name, whether that endpoint exists or not. */
function findEndpoint(catalog: Catalog, token: Token, idOrName: string): Endpoint {
  const endpoint = catalog.find(idOrName);
  if (endpoint === undefined && allows(token, 'query', idOrName))
    throw new DendroError('not_found', 'unknown endpoint; /api/endpoints lists the available ones');
  if (endpoint === undefined || !mayCall(token, endpoint)) throw missingScopeError(token);
  return endpoint;
}

/** A token that is pinned to projects may call only endpoints whose SQL restricts the records to its projects (`applies_pin`). */
function mayCall(token: Token, { definition }: Endpoint): boolean {
  return allows(token, 'query', definition.name) && (token.projects === undefined || definition.applies_pin);
}

function handleCatalog(dependencies: RouteDependencies, { raw }: HttpRequest): HttpResponse {
  const token = authenticate(requireServing(dependencies), raw);
  const callable = dependencies.catalog.endpoints.filter(endpoint => mayCall(token, endpoint));
  if (callable.length === 0) throw missingScopeError(token);
  return jsonResponse(
    200,
    { result: callable.map(({ definition }) => toCatalogEntry(definition)) },
    { 'Cache-Control': 'no-store' },
  );
}

/** Without a valid token: the built-in endpoints and those of enabled packs. With a valid token: every endpoint that it may call. */
function handleOpenApi({ version, catalog, serving }: RouteDependencies, { raw }: HttpRequest): HttpResponse {
  const ready = serving();
  const found = ready === undefined ? 'no_token' : findToken(ready, raw);
  const token = typeof found === 'string' ? undefined : found;
  const shown = catalog.endpoints.filter(endpoint =>
    token === undefined ? endpoint.isShipped : mayCall(token, endpoint),
  );
  const response = jsonResponse(200, buildOpenApi(version, shown), {
    'Cache-Control': 'private, no-cache',
    Vary: 'X-API-KEY, Authorization',
  });
  return { ...response, isThrottled: found === 'unknown_token' || found === 'expired_token' };
}

/** With If-None-Match, no-cache does not force a refresh: common HTTP clients add no-cache to every revalidation. */
function isRefreshForced(headers: IncomingHttpHeaders): boolean {
  const cacheControl = headers['cache-control'];
  if (cacheControl === undefined || headers['if-none-match'] !== undefined) return false;
  return cacheControl
    .toLowerCase()
    .split(',')
    .some(directive => directive.trim() === 'no-cache');
}
