// dendro mcp: serves the endpoints of a running server as tools to a client of the Model Context Protocol, over standard input and
// output. Nothing but the protocol's messages is written to standard output.
import { type Invocation, readToolLimits } from '../config.ts';
import { readVersion } from '../system/version.ts';
import { EndpointTools, UNTRUSTED_NOTE } from './mcp/endpoint-tools.ts';
import { serveJsonRpc } from './mcp/json-rpc.ts';
import { createProtocol } from './mcp/protocol.ts';
import { requireRunningServer } from './running-server.ts';

const INSTRUCTIONS = `Each tool runs a saved query on logs. In a result, data_through is the time of the newest record of the log kinds that the query reads, and clipped says why rows are missing: row-limit, byte-limit and time-limit are limits of the server, retention means that the requested start is before the retention limit, and tool-row-limit and tool-byte-limit are limits of these tools. If rows are missing, use a smaller time range, or pass next_cursor as cursor. ${UNTRUSTED_NOTE}`;

export async function mcp(invocation: Invocation): Promise<void> {
  const tools = new EndpointTools(requireRunningServer(invocation), readToolLimits(invocation));
  const protocol = createProtocol({ name: 'dendro', version: readVersion() }, INSTRUCTIONS, tools);
  // The client is gone if it no longer reads the responses.
  process.stdout.on('error', () => process.exit());
  await serveJsonRpc(process.stdin, process.stdout, protocol);
}
