// Handles one request: limits, path, method, then the route. Every thrown error becomes an error response.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError, RefusedError } from '../domain/errors.ts';
import type { Event, Observe } from '../observe/event.ts';
import type { AuthThrottle } from '../token/auth-throttle.ts';
import { WrongSecretError } from './authenticate.ts';
import { closeIfThrottled, sendThrottled, trackUnfinished, watchDelivery } from './connection.ts';
import { addCors, corsPreflightResponse } from './cors.ts';
import { errorResponse, STATUS_BY_CODE, toClientError } from './error-response.ts';
import { isRejected } from './parser-error.ts';
import { checkRequest, hasAmbiguousEnd } from './request-limits.ts';
import { addHsts, type HttpResponse, send } from './response.ts';
import { findRoute, HttpRequest, type Route } from './router.ts';
import type { UnsentResponses } from './unsent-responses.ts';

export interface RequestDependencies {
  readonly authThrottle: AuthThrottle;
  readonly clientAddressOf: (rawRequest: IncomingMessage) => string;
  readonly routes: readonly Route[];
  /** The route of `routes` that has cache hits. */
  readonly hitRoute: Route | undefined;
  /** Web origins whose pages may call the listener; empty: CORS is off. */
  readonly corsOrigins: readonly string[];
  readonly unsentResponses: UnsentResponses;
  readonly observe: Observe;
  /** Whether to report an `access` event, with the client's address, in addition to each `request_completed`. */
  readonly hasAccessLog?: boolean;
}

/**
 * Connections that close after a request with an ambiguous end. The bytes after that request may belong to its body (request
 * smuggling), so they are not handled as further requests.
 */
const ambiguousConnections = new WeakSet<Socket>();

export function handleRequest(
  dependencies: RequestDependencies,
  rawRequest: IncomingMessage,
  rawResponse: ServerResponse,
): void {
  const { hitRoute } = dependencies;
  const { socket } = rawRequest;
  if (ambiguousConnections.has(socket)) return;
  // A response without a socket waits for earlier responses of the connection (pipelining). If one of those is throttled, the
  // connection is closed.
  if (rawResponse.socket === null && closeIfThrottled(socket)) return;
  const startedAt = performance.now();
  const hit = hitRoute?.cacheHit?.(rawRequest, startedAt);
  if (hit === undefined) {
    trackUnfinished(socket, rawResponse);
    void respond(dependencies, rawRequest, rawResponse, startedAt);
    return;
  }
  const { endpoint, response, durationMs } = hit;
  if (canRespond(rawRequest, rawResponse))
    reportCompleted(dependencies, rawRequest, {
      type: 'request_completed',
      route: hitRoute?.path ?? '',
      endpoint,
      status: response.status,
      outcome: 'hit',
      durationMs,
    });
  sendResponse(dependencies, rawRequest, rawResponse, response);
  if (!rawResponse.writableFinished) trackUnfinished(socket, rawResponse);
}

async function respond(
  dependencies: RequestDependencies,
  rawRequest: IncomingMessage,
  rawResponse: ServerResponse,
  startedAt: number,
): Promise<void> {
  const { socket } = rawRequest;
  if (hasAmbiguousEnd(rawRequest)) {
    ambiguousConnections.add(socket);
    rawResponse.shouldKeepAlive = false;
  }
  if (rawRequest.headers['transfer-encoding'] !== undefined) {
    // Node validates Transfer-Encoding after emitting `request`. Wait one microtask, so that a rejected request is not handled.
    // `isRejected` does not say which request of the connection was rejected. If this request is complete after the microtask, it
    // is valid, and the rejected one is a later request.
    await undefined;
    if (!rawRequest.complete && isRejected(socket)) return;
  }
  const response = await createResponse(dependencies, rawRequest, rawResponse, startedAt);
  sendResponse(dependencies, rawRequest, rawResponse, response);
}

/** Also for requests without a listener (inject.ts). */
export async function createResponse(
  dependencies: RequestDependencies,
  rawRequest: IncomingMessage,
  rawResponse: ServerResponse,
  startedAt: number,
): Promise<HttpResponse> {
  const { routes, corsOrigins } = dependencies;
  let route: Route | undefined;
  let request: HttpRequest | undefined;
  let response: HttpResponse;
  try {
    checkRequest(rawRequest);
    const match = findRoute(routes, rawRequest.url ?? '');
    route = match.route;
    if (rawRequest.method === 'OPTIONS' && corsOrigins.length > 0)
      return corsPreflightResponse(route.methods); // not counted
    if (!route.methods.includes(rawRequest.method ?? '')) throw methodNotAllowed(rawRequest, route);
    request = new HttpRequest(rawRequest, rawResponse, startedAt, match);
    response = await route.handle(request);
  } catch (error) {
    // Users often leave a slow page: an error is then not reported.
    if (canRespond(rawRequest, rawResponse)) reportError(dependencies, rawRequest, route, request, error);
    const clientError = toClientError(error);
    response = route?.errorResponse?.(clientError, rawRequest) ?? errorResponse(clientError);
    if (clientError.code === 'method_not_allowed') response.headers.push('Allow', listMethods(route));
    if (error instanceof WrongSecretError) response = { ...response, isThrottled: true };
  }
  if (canRespond(rawRequest, rawResponse)) {
    reportCompleted(dependencies, rawRequest, {
      type: 'request_completed',
      route: route?.path ?? '',
      endpoint: request?.endpoint,
      status: response.status,
      outcome: request?.outcome ?? 'none',
      durationMs: performance.now() - startedAt,
    });
    // If anything has read the id, it may be in Dendro's log or in the query log of the store (`QueryOptions.label`).
    if (request?.usedId !== undefined) response.headers.push('Dendro-Request-Id', request.usedId);
  }
  return response;
}

/** Sends nothing if the client has disconnected. */
function sendResponse(
  dependencies: RequestDependencies,
  rawRequest: IncomingMessage,
  rawResponse: ServerResponse,
  response: HttpResponse,
): void {
  const { socket } = rawRequest;
  if (response.reportDelivery !== undefined) watchDelivery(socket, rawResponse, response.reportDelivery);
  if (!canRespond(rawRequest, rawResponse)) {
    void response.stream?.release();
    return;
  }
  const { corsOrigins, unsentResponses, authThrottle, clientAddressOf } = dependencies;
  if (corsOrigins.length > 0) addCors(response, corsOrigins, rawRequest);
  addHsts(response, socket);
  if (!response.isThrottled) send(rawResponse, response, unsentResponses);
  else
    sendThrottled(authThrottle, clientAddressOf(rawRequest), rawRequest, response, () =>
      send(rawResponse, response, unsentResponses),
    );
}

/**
 * False if the client has disconnected. A pipelined response that waits for an earlier one is not destroyed when the connection
 * closes, so the socket is checked too.
 */
function canRespond({ socket }: IncomingMessage, rawResponse: ServerResponse): boolean {
  return !rawResponse.destroyed && socket.writable;
}

function reportCompleted(
  { observe, hasAccessLog, clientAddressOf }: RequestDependencies,
  rawRequest: IncomingMessage,
  completed: Extract<Event, { type: 'request_completed' }>,
): void {
  observe(completed);
  if (!hasAccessLog) return;
  const method = rawRequest.method ?? '';
  observe({ ...completed, type: 'access', method, address: clientAddressOf(rawRequest) });
}

/** Reports the details of an error that the operator needs and the client does not get. */
function reportError(
  { observe, clientAddressOf }: RequestDependencies,
  rawRequest: IncomingMessage,
  { path: route }: Pick<Route, 'path'> = { path: '' },
  request: HttpRequest | undefined,
  error: unknown,
): void {
  if (error instanceof RefusedError) {
    const { reason, tokenName } = error;
    observe({ type: 'token_refused', reason, address: clientAddressOf(rawRequest), route, tokenName });
  }
  const { code, cause } = toClientError(error);
  const status = STATUS_BY_CODE[code];
  if (status < 500) return;
  const details = { route, endpoint: request?.endpoint, status, id: request?.id ?? '' };
  if (status === 500) observe({ type: 'request_failed', ...details, error });
  else observe({ type: 'request_unavailable', ...details, error: cause ?? error });
}

function methodNotAllowed({ method }: IncomingMessage, route: Route): DendroError {
  return new DendroError(
    'method_not_allowed',
    `method ${method} is not allowed; allowed: ${listMethods(route)}`,
  );
}

function listMethods(route: Route | undefined): string {
  return route?.methods.join(', ') ?? '';
}
