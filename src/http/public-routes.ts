// The routes of the public listener. They change no data. Checks run in this order: path, method, token, rate limit, endpoint,
// scope, parameters, and the projects that the token is pinned to.
import type { IncomingHttpHeaders } from 'node:http';
import type { BackupDependencies } from '../backup/take-backup.ts';
import { DendroError } from '../domain/errors.ts';
import type { Catalog, Endpoint } from '../endpoint/catalog.ts';
import { toCatalogEntry } from '../endpoint/catalog-entry.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import { explainEndpoint, requireExplainQuery } from '../endpoint/explain.ts';
import { type EndpointDependencies, type EndpointRun, runEndpoint } from '../endpoint/run-endpoint.ts';
import { type ValidatedRequests, validateParameters } from '../endpoint/validated-requests.ts';
import type { Erasure } from '../intake/erasure.ts';
import type { Intake } from '../intake/intake.ts';
import type { StoreName } from '../store/store.ts';
import { allows, type Token } from '../token/token.ts';
import { type AuthDependencies, authenticate, findToken } from './authenticate.ts';
import { consoleRoutes } from './console-files.ts';
import { chooseCoding, chooseFormat, chooseIsoTimestamps } from './content-negotiation.ts';
import { missingScopeError } from './error-response.ts';
import { buildOpenApi } from './openapi.ts';
import type { UploadRate } from './request-body.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import { resultResponse } from './result-response.ts';
import type { HttpRequest, Route } from './router.ts';
import type { UnsentResponses } from './unsent-responses.ts';

/** What routes need to serve requests. It exists only while the server is ready. */
export interface ServingDependencies extends EndpointDependencies, AuthDependencies {
  readonly validatedRequests: ValidatedRequests;
  readonly unsentResponses: UnsentResponses;
  readonly intake: Intake;
  readonly erasure: Erasure;
  readonly uploadRate: UploadRate;
  readonly backup: BackupDependencies;
}

export interface PublicDependencies {
  readonly version: string;
  readonly storeName: StoreName;
  readonly catalog: Catalog;
  /** Undefined while the server starts or stops. */
  readonly serving: () => ServingDependencies | undefined;
  readonly state: () => 'starting' | 'ok' | 'unavailable';
  /** False if this process cannot recover by itself: only a restart helps. */
  readonly isRecoverable: () => boolean;
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
 * `/health` and `/health/ready`: whether queries are served. `/health/live`: whether the process can still recover by itself, so
 * it is 200 while a remote store is unreachable: a restart would not help. All have the same body.
 */
export function healthRoutes({ state, isRecoverable, version, storeName }: PublicDependencies): Route[] {
  const respond = (isHealthy: boolean) =>
    jsonResponse(
      isHealthy ? 200 : 503,
      { status: state(), version, store: storeName },
      { 'Cache-Control': 'no-store' },
    );
  const isReady = () => state() === 'ok';
  return [
    { path: '/health', methods: READ_METHODS, handle: () => respond(isReady()) },
    { path: '/health/ready', methods: READ_METHODS, handle: () => respond(isReady()) },
    { path: '/health/live', methods: READ_METHODS, handle: () => respond(isRecoverable()) },
  ];
}

/** Results up to this size are not reserved in `unsentResponses`, so that a cache hit can respond synchronously. */
const MAX_SMALL_RESULT_BYTES = 256 * 1024;

/**
 * Returns no promise for a cached result that is small and already encoded: awaiting takes a noticeable part of the time of a
 * cache hit.
 */
function handleQuery(
  dependencies: PublicDependencies,
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
    forceRefresh: isRefreshForced(headers),
    request,
    caller: token.sha256,
    beforeLoad: serving.unsentResponses.requireRoom,
  });
  const toResponse = (completed: EndpointRun, encoded: EncodedResult) => {
    const tookMs = performance.now() - request.startedAt;
    request.outcome = completed.outcome;
    const ifNoneMatch = headers['if-none-match'];
    return resultResponse(
      endpoint.definition,
      completed,
      representation.format,
      encoded,
      ifNoneMatch,
      tookMs,
      token.sha256,
    );
  };
  const respond = (completed: EndpointRun) => {
    if (completed.result.rowBytes > MAX_SMALL_RESULT_BYTES) return respondWithLarge(completed);
    const encoded = completed.result.encode(representation);
    return encoded instanceof Promise
      ? encoded.then(bytes => toResponse(completed, bytes))
      : toResponse(completed, encoded);
  };
  /** Reserves the memory of the rows until they are encoded, so that many large results at once cannot take all memory. */
  const respondWithLarge = async (completed: EndpointRun) => {
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
async function handleExplain(dependencies: PublicDependencies, request: HttpRequest): Promise<HttpResponse> {
  const serving = requireServing(dependencies);
  const token = authenticate(serving, request.raw);
  const endpoint = findEndpoint(dependencies.catalog, token, request.pathParameter);
  requireExplainQuery(endpoint);
  chooseFormat(request, undefined);
  chooseIsoTimestamps(request);
  const validated = validateParameters(endpoint.definition, request.parameters, token.tier);
  const result = await explainEndpoint(serving, endpoint, validated, { projects: token.projects, request });
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

function handleCatalog(dependencies: PublicDependencies, { raw }: HttpRequest): HttpResponse {
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
function handleOpenApi(
  { version, catalog, serving }: PublicDependencies,
  { raw }: HttpRequest,
): HttpResponse {
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

/**
 * Called before authentication: while the server starts, a client gets 503 and retries. A 401 would make log shippers drop their
 * records.
 */
export function requireServing({ serving, state }: PublicDependencies): ServingDependencies {
  const ready = serving();
  if (ready === undefined)
    throw new DendroError(
      'unavailable',
      state() === 'starting' ? 'the server is starting' : 'the server is stopping',
    );
  return ready;
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
