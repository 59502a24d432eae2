// JSON-RPC 2.0 over streams: one message per line. Finds the requests in the input, calls the handler for each, and writes the
// responses. Malformed input gets the error that JSON-RPC defines for it.
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { MAX_RUNNING, MAX_WAITING, RequestQueue } from './request-queue.ts';

export interface RpcRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Aborts when the client cancels the request. */
  readonly signal: AbortSignal;
}

/** Returns the result as JSON text without line breaks. Throws an RpcError for a request that cannot be served. */
export type RpcHandler = (request: RpcRequest) => Promise<string> | string;

export const RPC_ERRORS = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  tooManyRequests: -32000,
} as const;

export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

type RequestId = string | number;

/** Larger than any sensible request. The rest of a longer line is skipped, so that it takes no memory. */
export const MAX_LINE_BYTES = 1024 * 1024;
/** How many messages a batch may have: their responses are in memory until the whole batch has run. */
export const MAX_BATCH = 32;
const CANCELLED = 'notifications/cancelled';
/** With this method, the client asks whether the program is alive. Such a request does not wait for others. */
const PING = 'ping';

/** Returns when the input has ended and every response is written. */
export async function serveJsonRpc(
  input: AsyncIterable<Buffer>,
  output: Writable,
  handle: RpcHandler,
): Promise<void> {
  // If the client does not read responses, no more requests are read or started: their responses would need memory.
  const drained = createDrainWaiter(output);
  const session = new Session(async request => {
    await drained();
    return handle(request);
  });
  const open = new Set<Promise<void>>();
  for await (const line of readLines(input)) {
    const response = session.respond(line).then(text => {
      if (text !== undefined) output.write(`${text}\n`);
    });
    open.add(response);
    void response.finally(() => open.delete(response));
    await drained();
  }
  await Promise.all(open);
  await drained();
}

/** Returns a function that waits until the stream accepts more data. All calls share one listener. */
function createDrainWaiter(output: Writable): () => Promise<unknown> | undefined {
  let waiting: Promise<unknown> | undefined;
  return () => {
    if (output.writableNeedDrain)
      waiting ??= once(output, 'drain').finally(() => {
        waiting = undefined;
      });
    return waiting;
  };
}

class Session {
  readonly #handle: RpcHandler;
  readonly #queue = new RequestQueue();
  /** The requests that run or wait. */
  readonly #open = new Map<RequestId, AbortController>();

  constructor(handle: RpcHandler) {
    this.#handle = handle;
  }

  /** Returns undefined if the message gets no response. `line` is undefined if it was too long. */
  async respond(line: string | undefined): Promise<string | undefined> {
    if (line === undefined)
      return toErrorText(
        null,
        RPC_ERRORS.invalidRequest,
        `the message is larger than ${MAX_LINE_BYTES} bytes`,
      );
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return toErrorText(null, RPC_ERRORS.parse, 'the message is not valid JSON');
    }
    if (!Array.isArray(message)) return this.#respondToMessage(message);
    return this.#respondToBatch(message);
  }

  /** Runs one request at a time, so that a batch counts as one running request. */
  async #respondToBatch(messages: readonly unknown[]): Promise<string | undefined> {
    if (messages.length === 0) return toErrorText(null, RPC_ERRORS.invalidRequest, 'the batch is empty');
    if (messages.length > MAX_BATCH)
      return toErrorText(
        null,
        RPC_ERRORS.invalidRequest,
        `the batch has ${messages.length} messages; the limit is ${MAX_BATCH}`,
      );
    const texts: string[] = [];
    for (const message of messages) {
      const text = await this.#respondToMessage(message);
      if (text !== undefined) texts.push(text);
    }
    return texts.length === 0 ? undefined : `[${texts.join(',')}]`;
  }

  async #respondToMessage(message: unknown): Promise<string | undefined> {
    const { jsonrpc, id, method, params = {} } = isObject(message) ? message : {};
    const isRequestId = typeof id === 'string' || Number.isInteger(id);
    const requestId = isRequestId ? (id as RequestId) : null;
    // A response from the client is ignored: this side sends no requests.
    if (isObject(message) && method === undefined && ('result' in message || 'error' in message))
      return undefined;
    if (jsonrpc !== '2.0' || typeof method !== 'string' || !(isRequestId || id === undefined))
      return toErrorText(requestId, RPC_ERRORS.invalidRequest, 'the message is not a JSON-RPC 2.0 request');
    if (requestId === null) {
      // A message without an id is a notification, which gets no response.
      if (method === CANCELLED && isObject(params)) this.#cancel(params['requestId']);
      return undefined;
    }
    if (!isObject(params))
      return toErrorText(requestId, RPC_ERRORS.invalidParams, 'params must be an object');
    if (this.#open.has(requestId))
      return toErrorText(
        requestId,
        RPC_ERRORS.invalidRequest,
        'another request with this id is not finished',
      );
    return this.#run(requestId, method, params);
  }

  async #run(
    id: RequestId,
    method: string,
    params: Readonly<Record<string, unknown>>,
  ): Promise<string | undefined> {
    if (method !== PING && this.#queue.isFull)
      return toErrorText(
        id,
        RPC_ERRORS.tooManyRequests,
        `${MAX_RUNNING} requests are running and ${MAX_WAITING} are waiting; send the request again after a response`,
      );
    const controller = new AbortController();
    this.#open.set(id, controller);
    const { signal } = controller;
    try {
      const handle = () => this.#handle({ method, params, signal });
      const result = await (method === PING ? handle() : this.#queue.run(handle, signal));
      // A cancelled request gets no response.
      return signal.aborted ? undefined : `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
    } catch (error) {
      if (signal.aborted) return undefined;
      return error instanceof RpcError
        ? toErrorText(id, error.code, error.message, error.data)
        : toErrorText(id, RPC_ERRORS.internal, (error as Error).message);
    } finally {
      this.#open.delete(id);
    }
  }

  #cancel(id: unknown): void {
    this.#open.get(id as RequestId)?.abort();
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function toErrorText(id: RequestId | null, code: number, message: string, data?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } });
}

const LINE_FEED = 0x0a;

/** Yields undefined for a line that is too long, and skips empty lines. */
async function* readLines(input: AsyncIterable<Buffer>): AsyncGenerator<string | undefined> {
  let parts: Buffer[] = [];
  let length = 0;
  const takeLine = (): string | undefined => {
    const line = length > MAX_LINE_BYTES ? undefined : Buffer.concat(parts).toString('utf8').trim();
    parts = [];
    length = 0;
    return line;
  };
  const add = (part: Buffer) => {
    length += part.length;
    if (length > MAX_LINE_BYTES) parts = [];
    else parts.push(part);
  };
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      const line = takeLine();
      if (line !== '') yield line;
    }
    add(chunk.subarray(start));
  }
  const line = takeLine();
  if (line !== '') yield line;
}
