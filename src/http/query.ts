// The routes of endpoints: query, explanation, catalog and OpenAPI. Checks run in this order: path, method, token, rate limit, scope,
// endpoint, parameters, and the projects that the token is pinned to.
import type { IncomingHttpHeaders } from 'node:http';
import { findClosest } from '../domain/closest-name.ts';
import { DendroError } from '../domain/errors.ts';
import { MAX_SMALL_RESULT_BYTES } from '../domain/limits.ts';
import type { Catalog, Endpoint } from '../endpoint/catalog.ts';
import { toCatalogEntry } from '../endpoint/catalog-entry.ts';
import type { EndpointDefinition } from '../endpoint/definition.ts';
import { explainEndpoint, requireExplainQuery } from '../endpoint/explain.ts';
import { bindParameters, listFallbacks, readIsoTimestamps, readOnce } from '../endpoint/parameters.ts';
import { type RunOptions, runEndpoint } from '../endpoint/run-endpoint.ts';
import { STUDIO_ENDPOINT, type Studio } from '../studio/studio.ts';
import { hostOf, toReachable } from '../system/reachable-url.ts';
import { allows, type Token } from '../token/token.ts';
import { authenticate, findToken } from './authenticate.ts';
import { readBodyParameters } from './body-parameters.ts';
import { chooseCoding, chooseFormat } from './content-negotiation.ts';
import { missingScopeError } from './error-response.ts';
import { buildOpenApi, openApiWithoutToken } from './openapi.ts';
import { type HttpResponse, JSON_TYPE, jsonResponse, toHeaderList } from './response.ts';
import { resultResponse } from './result-response.ts';
import type { HttpRequest } from './router.ts';
import { type RouteDependencies, requireServing, type ServingDependencies } from './serving.ts';

/** Of parameters that a request has and that change nothing. */
const MAX_IGNORED_SHOWN = 5;
/** Of an unknown name that the client sent. */
const MAX_SHOWN_LENGTH = 64;

export async function handleQuery(
  dependencies: RouteDependencies,
  request: HttpRequest,
): Promise<HttpResponse> {
  const serving = requireServing(dependencies);
  const { headers } = request.raw;
  const token = authenticate(serving, request.raw);
  const endpoint = findEndpoint(dependencies.catalog, token, request);
  const { definition } = endpoint;
  const isPost = request.raw.method === 'POST';
  const parameters = isPost ? await readBodyParameters(request, serving.uploadRate) : request.parameters;
  const encoding = {
    format: chooseFormat(parameters, headers.accept),
    isoTimestamps: readIsoTimestamps(parameters),
    contentCoding: chooseCoding(headers['accept-encoding']),
    redacted: token.redact_pii === true,
  };
  const values = bindParameters(definition, parameters, token, serving.defaultTier);
  const options: RunOptions = {
    token,
    forceRefresh: isRefreshForced(headers),
    request,
    beforeLoad: serving.unsentResponses.requireRoom,
  };
  const sql = readStudioQuery(serving, token, definition, parameters);
  const run =
    sql === undefined
      ? await runEndpoint(serving, endpoint, values, options)
      : await sql.studio.run(serving, endpoint, values, sql.text, options);
  const { value: result, key } = run;
  const isSmall = result.rowBytes <= MAX_SMALL_RESULT_BYTES;
  const release = isSmall ? () => {} : serving.unsentResponses.reserve(token.sha256, result.rowBytes);
  const encoded = await result.encode(encoding).finally(release);
  if (key !== undefined) serving.cache?.updateSize(key);
  const ignored = listIgnored(definition, parameters, sql === undefined ? [] : ['sql']);
  // The URL of a POST request does not have all of its parameters.
  if (isSmall && key !== undefined && !isPost)
    serving.cacheHits.allow(token, request.raw, { endpoint: definition.name, key, encoding, ignored });
  request.outcome = run.outcome;
  return resultResponse({
    run,
    format: encoding.format,
    encoded,
    ignored,
    ifNoneMatch: isPost ? undefined : headers['if-none-match'], // 304 is a response to GET and HEAD only
    tookMs: performance.now() - request.startedAt,
    caller: token.sha256,
  });
}

/** The query in the parameter `sql`; undefined: it has none, or the server or the token does not allow it. */
function readStudioQuery(
  { studio }: ServingDependencies,
  token: Token,
  { name }: EndpointDefinition,
  parameters: URLSearchParams,
): { readonly studio: Studio; readonly text: string } | undefined {
  if (studio === undefined || name !== STUDIO_ENDPOINT || !allows(token, 'studio')) return undefined;
  const text = readOnce(parameters, 'sql');
  return text === '' ? undefined : { studio, text };
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
  const values = bindParameters(endpoint.definition, request.parameters, token, serving.defaultTier);
  const result = await explainEndpoint(serving, endpoint, values, { token, request });
  request.outcome = 'bypass';
  const ignored = listIgnored(endpoint.definition, request.parameters);
  return jsonResponse(
    200,
    { result },
    { 'Cache-Control': 'no-store', ...(ignored !== undefined && { 'Dendro-Ignored': ignored }) },
  );
}

/** A token that is limited to some endpoints gets `forbidden` for every other name, whether that endpoint exists or not. */
function findEndpoint(catalog: Catalog, token: Token, request: HttpRequest): Endpoint {
  const idOrName = request.pathParameter;
  const endpoint = catalog.find(idOrName);
  if (endpoint === undefined && allows(token, 'query', idOrName))
    throw new DendroError('not_found', describeUnknown(catalog, token, idOrName));
  if (endpoint === undefined || !mayCall(token, endpoint)) {
    const ownScope = `query:${endpoint?.definition.name}`; // named only if the token has it, in which case its pin is the reason
    const scope = token.scopes.includes(ownScope) ? ownScope : 'query:NAME of this endpoint';
    throw missingScopeError(token, 'query', scope);
  }
  request.endpoint = endpoint.definition.name;
  return endpoint;
}

function describeUnknown(catalog: Catalog, token: Token, idOrName: string): string {
  const names = listCallable(catalog, token).map(({ definition }) => definition.name);
  const closest = findClosest(idOrName.slice(0, MAX_SHOWN_LENGTH), names);
  const hint = closest === undefined ? '' : `did you mean ${closest}? `;
  return `unknown endpoint; ${hint}/api/endpoints lists the available ones`;
}

/**
 * The header Dendro-Ignored: the declared parameters whose value has no meaning, and those that the endpoint does not declare,
 * percent-encoded, each with the declared one that was probably meant. Undefined if there are none.
 */
function listIgnored(
  definition: EndpointDefinition,
  parameters: URLSearchParams,
  used: readonly string[] = [],
): string | undefined {
  const declared = [...Object.keys(definition.parameters), 'format', 'timestamps', ...used];
  const undeclared = [...new Set(parameters.keys())].filter(name => name !== '' && !declared.includes(name));
  const described = undeclared.slice(0, MAX_IGNORED_SHOWN).map(name => {
    const shown = [...name].slice(0, MAX_SHOWN_LENGTH).join('');
    const closest = findClosest(shown, declared);
    return encodeURIComponent(shown) + (closest === undefined ? '' : `; did you mean ${closest}`);
  });
  const ignored = [...listFallbacks(definition, parameters), ...described].slice(0, MAX_IGNORED_SHOWN);
  return ignored.length === 0 ? undefined : ignored.join(', ');
}

/** A token that is pinned to projects may call only endpoints whose SQL restricts the records to its projects (`applies_pin`). */
function mayCall(token: Token, { definition }: Endpoint): boolean {
  return allows(token, 'query', definition.name) && (token.projects === undefined || definition.applies_pin);
}

function listCallable({ endpoints }: Catalog, token: Token): readonly Endpoint[] {
  return endpoints.filter(endpoint => mayCall(token, endpoint));
}

export async function handleCatalog(
  dependencies: RouteDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
  const token = authenticate(requireServing(dependencies), raw);
  const callable = listCallable(dependencies.catalog, token);
  if (callable.length === 0) throw missingScopeError(token, 'query');
  return jsonResponse(
    200,
    { result: callable.map(({ definition }) => toCatalogEntry(definition)) },
    { 'Cache-Control': 'no-store' },
  );
}

/**
 * Without a valid token: the built-in endpoints and those of enabled packs. With a valid token: every endpoint that it may call, and
 * the URL of the internal listener.
 */
export async function handleOpenApi(
  { version, catalog, serving, internalUrl }: RouteDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
  const ready = serving();
  const found = ready === undefined ? 'no_token' : findToken(ready, raw);
  const describe = (token: Token) => {
    const url = internalUrl?.();
    const reachable = url && toReachable(url, hostOf(raw.headers.host));
    return JSON.stringify(buildOpenApi(version, listCallable(catalog, token), reachable));
  };
  const body = typeof found === 'string' ? openApiWithoutToken(version, catalog.endpoints) : describe(found);
  const headers = toHeaderList({
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'private, no-cache',
    Vary: 'X-API-KEY, Authorization',
  });
  const isThrottled = found === 'unknown_token' || found === 'expired_token';
  return { status: 200, headers, body, isThrottled };
}

/** With If-None-Match, no-cache does not force a refresh: common HTTP clients add no-cache to every revalidation. */
function isRefreshForced(headers: IncomingHttpHeaders): boolean {
  if (headers['if-none-match'] !== undefined) return false;
  const directives = (headers['cache-control'] ?? '').toLowerCase().split(',');
  return directives.some(directive => directive.trim() === 'no-cache');
}
