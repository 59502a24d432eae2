// Handles one request: limits, path, method, then the route. Every thrown error becomes an error response.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError, RefusedError } from '../domain/errors.ts';
import type { CACHE_OUTCOMES, Observe } from '../observe/event.ts';
import { WrongSecretError } from './authenticate.ts';
import { onConnectionClose, trackUnfinished } from './connection.ts';
import { addCors, corsPreflightResponse } from './cors.ts';
import { watchDelivery } from './delivery.ts';
import { errorResponse, STATUS_BY_CODE, toClientError } from './error-response.ts';
import { isRejected } from './parser-error.ts';
import { checkRequest, hasAmbiguousEnd } from './request-limits.ts';
import { type HttpResponse, send } from './response.ts';
import type { HttpRequest, Route, RouteMatch, Router } from './router.ts';
import { closeIfThrottled, sendThrottled, type ThrottleDependencies } from './throttled-response.ts';
import { addHsts } from './tls.ts';
import type { UnsentResponses } from './unsent-responses.ts';

export interface RequestDependencies extends ThrottleDependencies {
  readonly router: Router;
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
  const { socket } = rawRequest;
  if (ambiguousConnections.has(socket)) return;
  if (hasAmbiguousEnd(rawRequest)) {
    ambiguousConnections.add(socket);
    rawResponse.shouldKeepAlive = false;
  }
  // A response without a socket waits for earlier responses of the connection (pipelining). If one of those is throttled, the
  // connection is closed.
  if (rawResponse.socket === null && closeIfThrottled(socket)) return;
  const handle = () => {
    const response = createResponse(dependencies, rawRequest, rawResponse);
    // No promise for a response that is ready: awaiting it would measurably slow down a cache hit.
    if (response instanceof Promise)
      void response.then(resolved => sendResponse(dependencies, rawRequest, rawResponse, resolved));
    else sendResponse(dependencies, rawRequest, rawResponse, response);
  };
  if (rawRequest.headers['transfer-encoding'] === undefined) {
    handle();
    if (!rawResponse.writableFinished) trackUnfinished(socket, rawResponse);
    return;
  }
  // Node validates Transfer-Encoding after emitting `request`. Wait one microtask, so that a rejected request is not handled.
  // `isRejected` does not say which request of the connection was rejected. If this request is complete after the microtask, it
  // is valid, and the rejected one is a later request.
  trackUnfinished(socket, rawResponse);
  queueMicrotask(() => {
    if (rawRequest.complete || !isRejected(socket)) handle();
  });
}

function sendResponse(
  dependencies: RequestDependencies,
  rawRequest: IncomingMessage,
  rawResponse: ServerResponse,
  response: HttpResponse,
): void {
  if (response.reportDelivery !== undefined) watchDelivery(rawRequest, rawResponse, response.reportDelivery);
  if (!canRespond(rawRequest, rawResponse)) {
    void response.stream?.release();
    return;
  }
  const { corsOrigins, unsentResponses } = dependencies;
  if (corsOrigins.length > 0) addCors(response, corsOrigins, rawRequest);
  addHsts(response, rawRequest.socket);
  if (response.isThrottled)
    sendThrottled(dependencies, rawRequest, response, () => send(rawResponse, response, unsentResponses));
  else send(rawResponse, response, unsentResponses);
}

/**
 * False if the client has disconnected. A pipelined response that waits for an earlier one is not destroyed when the connection
 * closes, so the socket is checked too.
 */
function canRespond({ socket }: IncomingMessage, rawResponse: ServerResponse): boolean {
  return !rawResponse.destroyed && socket.writable;
}

/** Also for requests without a listener (inject.ts). */
export function createResponse(
  dependencies: RequestDependencies,
  rawRequest: IncomingMessage,
  rawResponse: ServerResponse,
): HttpResponse | Promise<HttpResponse> {
  const { router, corsOrigins } = dependencies;
  const startedAt = performance.now();
  let route: Route | undefined;
  let routePath = '';
  let request: RoutedRequest | undefined;
  const toErrorResponse = (error: unknown) => {
    if (canRespond(rawRequest, rawResponse)) reportError(dependencies, rawRequest, routePath, error, request);
    const clientError = toClientError(error);
    const response = route?.errorResponse?.(clientError, rawRequest) ?? errorResponse(clientError);
    return { ...response, isThrottled: error instanceof WrongSecretError };
  };
  // If the client has disconnected, no response is sent, so none is counted. `toErrorResponse` reports no error then, because
  // users often leave a slow page.
  const complete = (response: HttpResponse) =>
    canRespond(rawRequest, rawResponse)
      ? completeResponse(dependencies, rawRequest, routePath, response, request, startedAt)
      : response;
  try {
    checkRequest(rawRequest);
    const match = router.find(rawRequest.url ?? '');
    route = match.route;
    routePath = route.path;
    if (rawRequest.method === 'OPTIONS' && corsOrigins.length > 0)
      return corsPreflightResponse(route.methods); // not counted
    if (!route.methods.includes(rawRequest.method ?? ''))
      return complete(methodNotAllowedResponse(rawRequest, route));
    request = new RoutedRequest(rawRequest, rawResponse, match, startedAt);
    const response = route.handle(request);
    if (!(response instanceof Promise)) return complete(response);
    return response.catch(toErrorResponse).then(complete);
  } catch (error) {
    return complete(toErrorResponse(error));
  }
}

/**
 * Counts the request. Adds the request id to the response if anything has read the id: it may then be in Dendro's log or in the
 * query log of the store (`QueryOptions.label`).
 */
function completeResponse(
  { observe, hasAccessLog, clientAddressOf }: RequestDependencies,
  rawRequest: IncomingMessage,
  routePath: string,
  response: HttpResponse,
  request: RoutedRequest | undefined,
  startedAt: number,
): HttpResponse {
  const completed = {
    type: 'request_completed',
    route: routePath,
    endpoint: request?.endpoint,
    status: response.status,
    outcome: request?.outcome ?? 'none',
    durationMs: performance.now() - startedAt,
  } as const;
  observe(completed);
  if (hasAccessLog)
    observe({
      ...completed,
      type: 'access',
      method: rawRequest.method ?? '',
      address: clientAddressOf(rawRequest),
    });
  if (request?.usedId !== undefined) response.headers.push('Dendro-Request-Id', request.usedId);
  return response;
}

/** Reports the details of an error that the operator needs and the client does not get. */
function reportError(
  { observe, clientAddressOf }: RequestDependencies,
  rawRequest: IncomingMessage,
  routePath: string,
  error: unknown,
  request: RoutedRequest | undefined,
): void {
  if (error instanceof RefusedError)
    observe({
      type: 'token_refused',
      reason: error.reason,
      address: clientAddressOf(rawRequest),
      route: routePath,
      tokenName: error.tokenName,
    });
  const { code, cause } = toClientError(error);
  const status = STATUS_BY_CODE[code];
  if (status < 500) return;
  const details = { route: routePath, endpoint: request?.endpoint, status, id: request?.id ?? '' };
  if (status === 500) observe({ type: 'request_failed', ...details, error });
  else observe({ type: 'request_unavailable', ...details, error: cause ?? error });
}

/**
 * Creates parameters, signal and id on first use, because most cache hits need none of them. A class, because creating getters
 * in an object literal for every request took a third of the time of a cache hit.
 */
class RoutedRequest implements HttpRequest {
  readonly raw: IncomingMessage;
  readonly pathParameter: string;
  readonly queryString: string;
  readonly target: string;
  readonly startedAt: number;
  endpoint: string | undefined = undefined;
  outcome: (typeof CACHE_OUTCOMES)[number] = 'none';
  readonly #rawResponse: ServerResponse;
  #parameters: URLSearchParams | undefined;
  #signal: AbortSignal | undefined;
  #id: string | undefined;

  constructor(
    rawRequest: IncomingMessage,
    rawResponse: ServerResponse,
    { pathParameter, queryString, target }: RouteMatch,
    startedAt: number,
  ) {
    this.startedAt = startedAt;
    this.raw = rawRequest;
    this.#rawResponse = rawResponse;
    this.pathParameter = pathParameter;
    this.queryString = queryString;
    this.target = target;
  }

  get parameters(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.queryString);
    return this.#parameters;
  }

  /** Never taken from the request: a client could put anything into the logs, even a token. */
  get id(): string {
    this.#id ??= randomUUID();
    return this.#id;
  }

  /** Undefined if `id` was never read. */
  get usedId(): string | undefined {
    return this.#id;
  }

  get signal(): AbortSignal {
    this.#signal ??= createDisconnectSignal(this.raw, this.#rawResponse);
    return this.#signal;
  }
}

function createDisconnectSignal(rawRequest: IncomingMessage, rawResponse: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = () => {
    if (!rawResponse.writableFinished)
      controller.abort(new DendroError('unavailable', 'the client disconnected'));
  };
  const { socket } = rawRequest;
  const cancel = onConnectionClose(socket, abort);
  rawResponse.once('close', () => {
    cancel();
    abort();
  });
  if (rawResponse.destroyed || socket.destroyed) abort();
  return controller.signal;
}

function methodNotAllowedResponse(rawRequest: IncomingMessage, route: Route): HttpResponse {
  const allow = route.methods.join(', ');
  const message = `method ${rawRequest.method} is not allowed; allowed: ${allow}`;
  const error = new DendroError('method_not_allowed', message);
  const response = route.errorResponse?.(error, rawRequest) ?? errorResponse(error);
  response.headers.push('Allow', allow);
  return response;
}
