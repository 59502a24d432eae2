// The public listener's routes, all of them reading. Each is checked in this order: path, method, token, rate,
// endpoint, scope, parameters, project pin.
import type { IncomingHttpHeaders } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { Catalog, Endpoint } from '../endpoint/catalog.ts';
import type { EncodedResult } from '../endpoint/endpoint-result.ts';
import {
  type EndpointDependencies,
  type EndpointRequest,
  type EndpointRun,
  runEndpoint,
} from '../endpoint/run-endpoint.ts';
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

/** Without a promise where the answer is at hand: to wait for what is there already shows in the time of a hit. */
function handleQuery(parts: PublicDependencies, call: HttpRequest): HttpResponse | Promise<HttpResponse> {
  const service = requireService(parts);
  const { headers } = call.request;
  const token = authenticate(service, call.request);
  if (token instanceof Promise) return token;
  const endpoint = findEndpoint(parts.catalog, token, call.pathParameter);
  const asked = {
    format: chooseFormat(call, headers.accept),
    coding: chooseCoding(headers['accept-encoding']),
    redacted: token.redact_pii === true,
  };
  const startedAt = performance.now();
  const reply = (ran: EndpointRun, encoding: EncodedResult) => {
    const tookMs = performance.now() - startedAt;
    return resultResponse(endpoint.definition, ran, asked.format, encoding, headers['if-none-match'], tookMs);
  };
  const ran = runEndpoint(service, endpoint, new TokenCall(call, token));
  if (ran instanceof Promise) return ran.then(async late => reply(late, await late.value.encode(asked)));
  const encoding = ran.value.encode(asked);
  return encoding instanceof Promise ? encoding.then(late => reply(ran, late)) : reply(ran, encoding);
}

/** A call as an endpoint sees it, within the limits of its token. */
class TokenCall implements EndpointRequest {
  readonly target: string | undefined;
  readonly projects: readonly string[] | undefined;
  readonly maxTier: string | undefined;
  readonly forceRefresh: boolean;
  readonly #call: HttpRequest;

  constructor(call: HttpRequest, token: Token) {
    this.target = call.target;
    this.projects = token.projects;
    this.maxTier = token.tier;
    this.forceRefresh = wantsFreshResult(call.request.headers);
    this.#call = call;
  }

  get parameters(): URLSearchParams {
    return this.#call.parameters;
  }

  get id(): string {
    return this.#call.id;
  }

  /** Made when first asked for; a hit never asks. */
  get signal(): AbortSignal {
    return this.#call.signal;
  }
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
