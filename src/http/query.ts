// The routes of endpoints: query, explanation, catalog and OpenAPI. Checks run in this order: path, method, token, rate limit, scope,
// endpoint, parameters, and the projects that the token is pinned to.
import type { IncomingHttpHeaders } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { Catalog, Endpoint } from '../endpoint/catalog.ts';
import { toCatalogEntry } from '../endpoint/catalog-entry.ts';
import { explainEndpoint, requireExplainQuery } from '../endpoint/explain.ts';
import { readIsoTimestamps } from '../endpoint/parameters.ts';
import { runEndpoint } from '../endpoint/run-endpoint.ts';
import { validateParameters } from '../endpoint/validated-requests.ts';
import { allows, type Token } from '../token/token.ts';
import { authenticate, findToken } from './authenticate.ts';
import { chooseCoding, chooseFormat } from './content-negotiation.ts';
import { missingScopeError } from './error-response.ts';
import { buildOpenApi } from './openapi.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import { resultResponse } from './result-response.ts';
import type { HttpRequest } from './router.ts';
import { type RouteDependencies, requireServing } from './serving.ts';

/**
 * If all rows of a result together are larger than this, their memory is reserved in `unsentResponses` while they are encoded, so that
 * many large results at once cannot take all memory.
 */
const MAX_SMALL_RESULT_BYTES = 256 * 1024;

export async function handleQuery(
  dependencies: RouteDependencies,
  request: HttpRequest,
): Promise<HttpResponse> {
  const serving = requireServing(dependencies);
  const { headers } = request.raw;
  const token = authenticate(serving, request.raw);
  const endpoint = findEndpoint(dependencies.catalog, token, request);
  const { definition } = endpoint;
  const encoding = {
    format: chooseFormat(request.parameters, headers.accept),
    isoTimestamps: readIsoTimestamps(request.parameters),
    contentCoding: chooseCoding(headers['accept-encoding']),
    redacted: token.redact_pii === true,
  };
  const validated = validateParameters(definition, request.parameters, token.tier);
  const run = await runEndpoint(serving, endpoint, validated, {
    projects: token.projects,
    tokenName: token.name,
    forceRefresh: isRefreshForced(headers),
    request,
    caller: token.sha256,
    beforeLoad: serving.unsentResponses.requireRoom,
  });
  const { result, key } = run;
  const isSmall = result.rowBytes <= MAX_SMALL_RESULT_BYTES;
  const release = isSmall ? () => {} : serving.unsentResponses.reserve(token.sha256, result.rowBytes);
  const encoded = await result.encode(encoding).finally(release);
  if (isSmall && key !== undefined)
    serving.cacheHits.allow(token, request.raw, { definition, key, encoding });
  request.outcome = run.outcome;
  return resultResponse({
    definition,
    run,
    format: encoding.format,
    encoded,
    ifNoneMatch: headers['if-none-match'],
    tookMs: performance.now() - request.startedAt,
    caller: token.sha256,
  });
}

/** An explanation is always JSON, but wrong values of `format` and `timestamps` are errors, as in a query. */
export async function handleExplain(
  dependencies: RouteDependencies,
  request: HttpRequest,
): Promise<HttpResponse> {
  const serving = requireServing(dependencies);
  const token = authenticate(serving, request.raw);
  const endpoint = findEndpoint(dependencies.catalog, token, request);
  requireExplainQuery(endpoint);
  chooseFormat(request.parameters, undefined);
  readIsoTimestamps(request.parameters);
  const validated = validateParameters(endpoint.definition, request.parameters, token.tier);
  const { projects, name: tokenName } = token;
  const result = await explainEndpoint(serving, endpoint, validated, { projects, tokenName, request });
  request.outcome = 'bypass';
  return jsonResponse(200, { result }, { 'Cache-Control': 'no-store' });
}

/** A token that is limited to some endpoints gets `forbidden` for every other name, whether that endpoint exists or not. */
function findEndpoint(catalog: Catalog, token: Token, request: HttpRequest): Endpoint {
  const idOrName = request.pathParameter;
  const endpoint = catalog.find(idOrName);
  if (endpoint === undefined && allows(token, 'query', idOrName))
    throw new DendroError('not_found', 'unknown endpoint; /api/endpoints lists the available ones');
  if (endpoint === undefined || !mayCall(token, endpoint)) throw missingScopeError(token);
  request.endpoint = endpoint.definition.name;
  return endpoint;
}

/** A token that is pinned to projects may call only endpoints whose SQL restricts the records to its projects (`applies_pin`). */
function mayCall(token: Token, { definition }: Endpoint): boolean {
  return allows(token, 'query', definition.name) && (token.projects === undefined || definition.applies_pin);
}

export async function handleCatalog(
  dependencies: RouteDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
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
export async function handleOpenApi(
  { version, catalog, serving }: RouteDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
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
  if (headers['if-none-match'] !== undefined) return false;
  const directives = (headers['cache-control'] ?? '').toLowerCase().split(',');
  return directives.some(directive => directive.trim() === 'no-cache');
}
