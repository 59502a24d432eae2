// From a request to the reply that goes out: limits, path, method, then the route; whatever is thrown becomes an error.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { Observe } from '../observe/event.ts';
import { addCors, corsPreflightResponse } from './cors.ts';
import { errorResponse, toCallerError } from './error-response.ts';
import { checkRequest } from './request-limits.ts';
import { type HttpResponse, send } from './response.ts';
import type { HttpRequest, Route, RouteMatch, Router } from './router.ts';

export interface RequestHandling {
  readonly router: Router;
  /** Web origins whose pages may call; none: CORS is off. */
  readonly corsOrigins: readonly string[];
  readonly observe: Observe;
}

export function handleRequest(
  answering: RequestHandling,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  // The parser looks at a transfer encoding only after this; where it refuses the request, its refusal is the answer.
  if (request.headers['transfer-encoding'] === undefined) handleNow(answering, request, response);
  else queueMicrotask(() => handleNow(answering, request, response));
}

function handleNow(answering: RequestHandling, request: IncomingMessage, response: ServerResponse): void {
  const reply = findReply(answering, request, response);
  if (reply instanceof Promise) void reply.then(late => finish(answering, request, response, late));
  else finish(answering, request, response, reply);
}

function finish(
  { corsOrigins }: RequestHandling,
  request: IncomingMessage,
  response: ServerResponse,
  reply: HttpResponse,
): void {
  if (response.destroyed) return;
  if (corsOrigins.length > 0) addCors(reply, corsOrigins, request);
  send(response, reply);
}

function findReply(
  answering: RequestHandling,
  request: IncomingMessage,
  response: ServerResponse,
): HttpResponse | Promise<HttpResponse> {
  let path = '';
  let call: RequestCall | undefined;
  try {
    checkRequest(request);
    const target = answering.router.find(request.url ?? '');
    const { route } = target;
    path = route.path;
    if (request.method === 'OPTIONS' && answering.corsOrigins.length > 0)
      return corsPreflightResponse(route.methods);
    if (!route.methods.includes(request.method ?? ''))
      return count(answering, path, wrongMethod(request, route));
    call = new RequestCall(request, response, target);
    const reply = route.handle(call);
    if (!(reply instanceof Promise)) return count(answering, path, reply, call);
    return reply
      .catch(error => fail(answering, path, response, error, call))
      .then(late => count(answering, path, late, call));
  } catch (error) {
    return count(answering, path, fail(answering, path, response, error, call), call);
  }
}

function count(
  { observe }: RequestHandling,
  route: string,
  reply: HttpResponse,
  call?: RequestCall,
): HttpResponse {
  observe({ type: 'request_completed', route, status: reply.status });
  if (call?.idInLogs !== undefined) reply.headers.push('Dendro-Request-Id', call.idInLogs);
  return reply;
}

function fail(
  { observe }: RequestHandling,
  route: string,
  response: ServerResponse,
  error: unknown,
  call?: RequestCall,
): HttpResponse {
  const callerError = toCallerError(error);
  const leftFirst = response.destroyed;
  if (callerError.code === 'internal' && !leftFirst)
    observe({ type: 'request_failed', route, id: call?.id ?? '', error });
  else if (callerError.code === 'unavailable' && callerError.cause !== undefined && !leftFirst)
    observe({ type: 'store_query_failed', id: call?.id ?? '', error: callerError.cause });
  return errorResponse(callerError);
}

/**
 * Parameters, signal and id are made only when somebody wants them: an answer that is at hand may need none. A class,
 * since a getter in an object literal is defined anew for every request, which took a third of the time of a cached hit.
 */
class RequestCall implements HttpRequest {
  readonly request: IncomingMessage;
  readonly pathParameter: string;
  readonly query: string;
  readonly target: string;
  readonly #response: ServerResponse;
  #parameters: URLSearchParams | undefined;
  #signal: AbortSignal | undefined;
  #id: string | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    { pathParameter, query, target }: RouteMatch,
  ) {
    this.request = request;
    this.#response = response;
    this.pathParameter = pathParameter;
    this.query = query;
    this.target = target;
  }

  get parameters(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.query);
    return this.#parameters;
  }

  /** Never one that the caller sends: whatever that holds, a token even, would stand in logs. */
  get id(): string {
    this.#id ??= randomUUID();
    return this.#id;
  }

  /** Undefined as long as nobody wrote it anywhere. */
  get idInLogs(): string | undefined {
    return this.#id;
  }

  get signal(): AbortSignal {
    this.#signal ??= signalWhenLeft(this.request, this.#response);
    return this.#signal;
  }
}

function signalWhenLeft(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const leave = () => {
    if (!response.writableFinished) controller.abort(new DendroError('unavailable', 'the caller has left'));
  };
  // A response that waits behind another on its connection is never closed; its request is, when the connection ends.
  request.once('close', () => {
    if (request.socket.destroyed) leave();
  });
  if (response.destroyed) leave();
  else response.once('close', leave);
  return controller.signal;
}

function wrongMethod({ method }: IncomingMessage, { methods }: Route): HttpResponse {
  const allow = methods.join(', ');
  const error = new DendroError('method_not_allowed', `${method} is not allowed here; allowed are ${allow}`);
  return errorResponse(error, { Allow: allow });
}
