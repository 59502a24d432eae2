// dendro mcp: serves the endpoints of a running server as tools to a client of the Model Context Protocol, over standard input and
// output: JSON-RPC 2.0, one message per line. Supports the current revision of the protocol, in which every request names the
// revision, and the earlier ones, in which a client can call `initialize` first. Nothing else is written to standard output.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Invocation } from '../config.ts';
import { isJsonObject, type JsonObject, parseJson } from '../system/parse-json.ts';
import { readVersion } from '../system/version.ts';
import type { Io } from './io.ts';
import { EndpointTools, type ToolResult, UNTRUSTED_NOTE } from './mcp-tools.ts';
import { requireServer } from './target.ts';

const INSTRUCTIONS = `Each tool runs a saved query on logs. In a result, data_through is the time of the newest record of the log kinds that the query reads, and clipped says why rows are missing: row-limit, byte-limit and time-limit are limits of the server, retention means that the requested start is before the retention limit, and tool-row-limit and tool-byte-limit are limits of these tools. If rows are missing, use a smaller time range, or pass next_cursor as cursor. ${UNTRUSTED_NOTE}`;

/** Clients declare this revision in every request; `initialize` does not exist in it. */
const CURRENT_VERSION = '2026-07-28';
/** Revisions with `initialize`, newest first. */
const EARLIER_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const VERSIONS = [CURRENT_VERSION, ...EARLIER_VERSIONS];

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';

const DESCRIPTION = { capabilities: { tools: {} }, instructions: INSTRUCTIONS };
/** How long clients may cache lists: the tools change if an operator changes endpoints or the scopes of the token. */
const LIFETIME = { ttlMs: 60_000, cacheScope: 'private' };
const ANNOTATIONS = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

const ERRORS = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  unsupportedVersion: -32022,
} as const;

function rpcError(code: keyof typeof ERRORS, message: string, data?: unknown): Error {
  return Object.assign(new Error(message), { rpcCode: ERRORS[code], data });
}

export async function mcp(invocation: Invocation, { stdin, stdout, exit }: Io): Promise<void> {
  const session = new Session(new EndpointTools(requireServer(invocation)));
  stdout.on('error', () => exit(0)); // the client is gone if it no longer reads the responses
  const open = new Set<Promise<void>>();
  for await (const line of createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue;
    const response = session.respond(line).then(text => {
      if (text !== undefined) stdout.write(`${text}\n`);
    });
    open.add(response);
    void response.finally(() => open.delete(response));
    // If the client does not read responses, no more requests are read: their responses would need memory.
    if (stdout.writableNeedDrain) await once(stdout, 'drain');
  }
  await Promise.all(open);
}

class Session {
  readonly #tools: EndpointTools;
  readonly #serverInfo = { name: 'dendro', version: readVersion() };
  /** The requests that run, by their ids. */
  readonly #open = new Map<unknown, AbortController>();

  constructor(tools: EndpointTools) {
    this.#tools = tools;
  }

  /** Returns undefined for a message that gets no response: a notification, a response, and a request that was cancelled. */
  async respond(line: string): Promise<string | undefined> {
    let id: unknown = null;
    const controller = new AbortController();
    try {
      const message = parse(line);
      const { jsonrpc, method, params = {} } = message;
      if (method === undefined && ('result' in message || 'error' in message)) return undefined;
      const isNotification = message['id'] === undefined;
      if (typeof message['id'] === 'string' || Number.isInteger(message['id'])) id = message['id'];
      if (jsonrpc !== '2.0' || typeof method !== 'string' || (id === null && !isNotification))
        throw rpcError('invalidRequest', 'the message is not a JSON-RPC 2.0 request');
      if (isNotification) {
        if (method === 'notifications/cancelled' && isJsonObject(params))
          this.#open.get(params['requestId'])?.abort();
        return undefined;
      }
      if (!isJsonObject(params)) throw rpcError('invalidParams', 'params must be an object');
      this.#open.set(id, controller);
      const result = await this.#handle(method, params, controller.signal);
      if (controller.signal.aborted) return undefined;
      return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      const {
        message,
        rpcCode: code = ERRORS.internal,
        data,
      } = error as Error & { rpcCode?: number; data?: unknown };
      return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } });
    } finally {
      if (this.#open.get(id) === controller) this.#open.delete(id);
    }
  }

  /** Returns the result as JSON text without line breaks. */
  async #handle(method: string, params: JsonObject, signal: AbortSignal): Promise<string> {
    const meta = isJsonObject(params['_meta']) ? params['_meta'] : {};
    const serverInfo = this.#serverInfo;
    if (meta[VERSION_KEY] !== undefined) checkMeta(meta);
    else if (method === 'ping') return '{}';
    else if (method === 'initialize') {
      // Another version than the requested one is an offer, which the client may reject.
      const protocolVersion =
        EARLIER_VERSIONS.find(version => version === params['protocolVersion']) ?? EARLIER_VERSIONS[0];
      return JSON.stringify({ protocolVersion, serverInfo, ...DESCRIPTION });
    }
    // Every result of the current revision has these fields. Clients of earlier ones ignore them.
    const common = { resultType: 'complete', _meta: { [SERVER_INFO_KEY]: serverInfo } };
    switch (method) {
      case 'server/discover':
        return JSON.stringify({ ...common, ...LIFETIME, supportedVersions: VERSIONS, ...DESCRIPTION });
      case 'tools/list': {
        const list = await this.#tools.list(signal);
        const tools = list.map(tool => ({ ...tool, annotations: ANNOTATIONS }));
        return JSON.stringify({ ...common, ...LIFETIME, tools });
      }
      case 'tools/call':
        return formatToolResult(common, await this.#callTool(params, signal));
      default:
        throw rpcError('methodNotFound', `unknown method ${method}`);
    }
  }

  async #callTool({ name, arguments: args = {} }: JsonObject, signal: AbortSignal): Promise<ToolResult> {
    if (typeof name !== 'string') throw rpcError('invalidParams', 'name must be a string');
    if (!isJsonObject(args)) throw rpcError('invalidParams', 'arguments must be an object');
    const result = await this.#tools.call(name, args, signal);
    if (result === undefined) throw rpcError('invalidParams', `unknown tool ${name}`);
    return result;
  }
}

function parse(line: string): JsonObject {
  const message = parseJson(line);
  if (message === undefined) throw rpcError('parse', 'the message is not valid JSON');
  if (isJsonObject(message)) return message;
  throw rpcError('invalidRequest', 'the message is not a JSON-RPC 2.0 request; batches are not supported');
}

function checkMeta(meta: JsonObject): void {
  const requested = meta[VERSION_KEY];
  if (requested !== CURRENT_VERSION)
    throw rpcError('unsupportedVersion', `protocol version ${requested} is not supported`, {
      supported: VERSIONS,
      requested,
    });
  if (!isJsonObject(meta[CAPABILITIES_KEY]))
    throw rpcError('invalidParams', `_meta has no ${CAPABILITIES_KEY}`);
}

/** Concatenates text, because parsing would round numbers in the rows that a double cannot represent. */
function formatToolResult(common: object, { text, isError }: ToolResult): string {
  const fields = JSON.stringify({ ...common, content: [{ type: 'text', text }], isError });
  return isError ? fields : `${fields.slice(0, -1)},"structuredContent":${text}}`;
}
