// The Model Context Protocol: the methods of a server that has only tools. Supports the current revision, in which every request
// names the revision, and the earlier ones, in which a client calls `initialize` first.
import { isObject, RPC_ERRORS, RpcError, type RpcHandler, type RpcRequest } from './json-rpc.ts';

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

export interface ToolResult {
  /** JSON text of an object, or a plain text if `isError`. */
  readonly text: string;
  readonly isError: boolean;
}

export interface ToolProvider {
  list(signal: AbortSignal): Promise<readonly Tool[]>;
  /** Undefined if there is no such tool. */
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<ToolResult | undefined>;
}

/** Clients declare this revision in every request; `initialize` does not exist in it. */
export const CURRENT_VERSION = '2026-07-28';
/** Revisions with `initialize`, newest first. */
export const EARLIER_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const [NEWEST_EARLIER_VERSION = ''] = EARLIER_VERSIONS;

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
const UNSUPPORTED_VERSION = -32022;

const CAPABILITIES = { tools: {} };
/** How long clients may cache lists: the tools change if an operator changes endpoints or the scopes of the token. */
const LIST_LIFETIME_MS = 60_000;
const READ_ONLY = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

export function createProtocol(
  serverInfo: { readonly name: string; readonly version: string },
  instructions: string,
  tools: ToolProvider,
): RpcHandler {
  let isInitialized = false;
  return async request => {
    const { method, params } = request;
    const meta = isObject(params['_meta']) ? params['_meta'] : {};
    const namesVersion = meta[VERSION_KEY] !== undefined; // clients of earlier revisions do not name it
    if (!namesVersion && method === 'initialize') {
      isInitialized = true;
      return JSON.stringify({
        protocolVersion: negotiate(params['protocolVersion']),
        capabilities: CAPABILITIES,
        serverInfo,
        instructions,
      });
    }
    if (!namesVersion && method === 'ping') return '{}';
    if (namesVersion) checkMeta(meta);
    else if (!isInitialized)
      throw new RpcError(
        RPC_ERRORS.invalidParams,
        `_meta has no ${VERSION_KEY}; clients of revisions before ${CURRENT_VERSION} call initialize first`,
      );
    // Every result of the current revision has these fields. Clients of earlier ones ignore them.
    const common = { resultType: 'complete', _meta: { [SERVER_INFO_KEY]: serverInfo } };
    const lifetime = { ttlMs: LIST_LIFETIME_MS, cacheScope: 'private' };
    switch (method) {
      case 'server/discover':
        return JSON.stringify({
          ...common,
          ...lifetime,
          supportedVersions: [CURRENT_VERSION, ...EARLIER_VERSIONS],
          capabilities: CAPABILITIES,
          instructions,
        });
      case 'tools/list': {
        const list = await tools.list(request.signal);
        return JSON.stringify({
          ...common,
          ...lifetime,
          tools: list.map(tool => ({ ...tool, annotations: READ_ONLY })),
        });
      }
      case 'tools/call':
        return formatToolResult(common, await callTool(tools, request));
      default:
        throw new RpcError(RPC_ERRORS.methodNotFound, `unknown method ${method}`);
    }
  };
}

/** The requested version if it is one of EARLIER_VERSIONS; otherwise the newest of them, which the client may reject. */
function negotiate(requested: unknown): string {
  return EARLIER_VERSIONS.find(version => version === requested) ?? NEWEST_EARLIER_VERSION;
}

function checkMeta(meta: Readonly<Record<string, unknown>>): void {
  const requested = meta[VERSION_KEY];
  if (requested !== CURRENT_VERSION)
    throw new RpcError(UNSUPPORTED_VERSION, `protocol version ${requested} is not supported`, {
      supported: [CURRENT_VERSION, ...EARLIER_VERSIONS],
      requested,
    });
  if (!isObject(meta[CAPABILITIES_KEY]))
    throw new RpcError(RPC_ERRORS.invalidParams, `_meta has no ${CAPABILITIES_KEY}`);
}

async function callTool(tools: ToolProvider, { params, signal }: RpcRequest): Promise<ToolResult> {
  const { name, arguments: args = {} } = params;
  if (typeof name !== 'string') throw new RpcError(RPC_ERRORS.invalidParams, 'name must be a string');
  if (!isObject(args)) throw new RpcError(RPC_ERRORS.invalidParams, 'arguments must be an object');
  const result = await tools.call(name, args, signal);
  if (result === undefined) throw new RpcError(RPC_ERRORS.invalidParams, `unknown tool ${name}`);
  return result;
}

/** Concatenates text, because parsing would round numbers in the rows that a double cannot represent. */
function formatToolResult(common: object, { text, isError }: ToolResult): string {
  const fields = JSON.stringify({ ...common, content: [{ type: 'text', text }], isError });
  return isError ? fields : `${fields.slice(0, -1)},"structuredContent":${text}}`;
}
