// The public listener's routes, all of them reading. Each is checked in this order: path, method, token, endpoint,
// scope, parameters.
import type { Catalog } from '../endpoint/catalog.ts';
import { type Runner, runEndpoint } from '../endpoint/run.ts';
import { DendroError } from '../errors.ts';
import type { StoreName } from '../store/store.ts';
import { allows } from '../token/token.ts';
import type { TokenSet } from '../token/token-set.ts';
import { chooseFormat } from './answer-format.ts';
import { authenticate, identify } from './authenticate.ts';
import { describeEndpoint } from './catalog-response.ts';
import type { Call, Route } from './listener.ts';
import { describeApi } from './openapi.ts';
import { jsonReply, type Reply } from './reply.ts';
import { resultReply } from './result-response.ts';

export interface Service extends Runner {
  readonly tokens: TokenSet;
}

export interface PublicParts {
  readonly version: string;
  readonly storeName: StoreName;
  readonly catalog: Catalog;
  /** Undefined until the store is open, and again when the program stops. */
  readonly service: () => Service | undefined;
  readonly state: () => 'starting' | 'ok' | 'unavailable';
}

const READING = ['GET', 'HEAD'];

export function publicRoutes(parts: PublicParts): Route[] {
  return [
    { path: '/api/endpoints/query/*', methods: READING, answer: call => answerQuery(parts, call) },
    { path: '/api/endpoints', methods: READING, answer: call => answerCatalog(parts, call) },
    { path: '/openapi.json', methods: READING, answer: call => answerOpenApi(parts, call) },
    healthRoute(parts),
  ];
}

export function healthRoute({ state, version, storeName }: PublicParts): Route {
  return {
    path: '/health',
    methods: READING,
    answer: () => {
      const status = state();
      const health = { status, version, store: storeName };
      return jsonReply(status === 'ok' ? 200 : 503, health, { 'Cache-Control': 'no-store' });
    },
  };
}

async function answerQuery(parts: PublicParts, { request, rest, parameters, signal }: Call): Promise<Reply> {
  const service = requireService(parts);
  const token = authenticate(request.headers, service.tokens);
  const idOrName = decodeName(rest);
  const endpoint = parts.catalog.find(idOrName);
  if (!allows(token, `query:${endpoint?.definition.name ?? idOrName}`)) throw missingScope();
  if (endpoint === undefined)
    throw new DendroError('not_found', 'there is no such endpoint; /api/endpoints lists those there are');
  const format = chooseFormat(parameters, request.headers.accept);
  const result = await runEndpoint(service, endpoint, parameters, signal);
  return resultReply(endpoint.query.columns, result, format);
}

function answerCatalog(parts: PublicParts, { request }: Call): Reply {
  const token = authenticate(request.headers, requireService(parts).tokens);
  const callable = parts.catalog.endpoints.filter(({ definition }) =>
    allows(token, `query:${definition.name}`),
  );
  if (callable.length === 0) throw missingScope();
  return jsonReply(200, { result: callable.map(describeEndpoint) }, { 'Cache-Control': 'no-store' });
}

/** Open to everyone: the built-in endpoints, and with a good token all that it may call. */
function answerOpenApi({ version, catalog, service }: PublicParts, { request }: Call): Reply {
  const tokens = service()?.tokens;
  const token = tokens === undefined ? undefined : identify(request.headers, tokens);
  const shown = catalog.endpoints.filter(({ definition, builtIn }) =>
    token === undefined ? builtIn : allows(token, `query:${definition.name}`),
  );
  return jsonReply(200, describeApi(version, shown));
}

/** Checked before the token, so that a shipper or a dashboard is told to come back, never that its token is bad. */
function requireService({ service, state }: PublicParts): Service {
  const ready = service();
  if (ready === undefined)
    throw new DendroError('unavailable', state() === 'starting' ? 'still starting' : 'stopping');
  return ready;
}

function missingScope(): DendroError {
  return new DendroError('forbidden', 'the token does not have the scope for this');
}

/** A name may be percent-encoded; what does not decode is no name that exists. */
function decodeName(rest: string): string {
  try {
    return decodeURIComponent(rest);
  } catch {
    return rest;
  }
}
