// Handles requests in this process, without a listener and a connection: for commands that open a data directory themselves.
import { type IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { Observe } from '../observe/event.ts';
import { createResponse, type RequestDependencies } from './handle-request.ts';
import type { HttpResponse, ResponseStream } from './response.ts';
import type { Route } from './router.ts';

/** Like `fetch`, with a path in place of a URL. */
export type Inject = (path: string, init?: RequestInit) => Promise<Response>;

/** `headers` are added to every request. */
export function createInject(
  routes: readonly Route[],
  observe: Observe,
  headers: Readonly<Record<string, string>>,
): Inject {
  const dependencies: Pick<RequestDependencies, 'routes' | 'corsOrigins' | 'observe' | 'clientAddressOf'> = {
    routes,
    corsOrigins: [],
    observe,
    clientAddressOf: () => 'local',
  };
  return async (path, init = {}) => {
    const rawRequest = createRequest(path, init, headers);
    // Without a connection, nothing is unsent, and no client can guess tokens.
    const response = await createResponse(
      dependencies as RequestDependencies,
      rawRequest,
      new ServerResponse(rawRequest),
      performance.now(),
    );
    response.reportDelivery?.(true);
    return toResponse(response);
  };
}

function createRequest(
  path: string,
  { method = 'GET', headers, body }: RequestInit,
  added: Readonly<Record<string, string>>,
): IncomingMessage {
  const content = body === undefined || body === null ? [] : [Buffer.from(body as string | Uint8Array)];
  const fields = {
    method,
    url: path,
    httpVersion: '1.1',
    headers: { host: 'local', ...Object.fromEntries(new Headers(headers)), ...added },
    rawHeaders: [],
    socket: new Socket(),
  };
  return Object.assign(Readable.from(content), fields) as unknown as IncomingMessage;
}

function toResponse({ status, headers, body, stream }: HttpResponse): Response {
  const pairs: [string, string][] = [];
  for (let index = 0; index < headers.length; index += 2)
    pairs.push([headers[index] ?? '', headers[index + 1] ?? '']);
  return new Response(stream === undefined ? body : ReadableStream.from(readStream(stream)), {
    status,
    headers: pairs,
  });
}

/** Releases the stream when it was read, or when the reader stops. */
async function* readStream({ chunks, release }: ResponseStream): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } finally {
    await release();
  }
}
