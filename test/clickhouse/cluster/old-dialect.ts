// ClickHouse 18.16, the one that Debian packages, as today's client and our SQL speak to it: parameters become literals,
// settings that it does not know are left out, and so is what it lacks in a table (codecs, TTL, LowCardinality). Queries
// and inserts pass as they are.
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Known to 18.16, or part of the protocol. */
const KNOWN = new Set([
  'query',
  'database',
  'query_id',
  'enable_http_compression',
  'readonly',
  'max_execution_time',
  'wait_end_of_query',
  'output_format_json_quote_64bit_integers',
  'output_format_json_quote_denormals',
  'skip_unavailable_shards',
  'insert_deduplicate',
  'insert_distributed_sync',
  'input_format_skip_unknown_fields',
]);

/** Answers the port of a proxy in front of the server. */
export async function openOldDialect(port: number): Promise<{ port: number; close(): Promise<void> }> {
  const server: Server = createServer((incoming, response) => {
    pass(port, incoming, response).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function pass(port: number, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(incoming.url ?? '/', `http://127.0.0.1:${port}`);
  const parameters = new Map<string, string>();
  for (const [name, value] of [...url.searchParams]) {
    if (name.startsWith('param_')) parameters.set(name.slice('param_'.length), value);
    if (!KNOWN.has(name)) url.searchParams.delete(name);
  }
  const body = await readAll(incoming);
  // A query stands in the body, unless rows do.
  const translated = url.searchParams.has('query')
    ? body
    : Buffer.from(translate(body.toString('utf8'), parameters));
  if (/^alter table .* modify ttl /.test(translated.toString())) return void response.writeHead(200).end();
  const { 'accept-encoding': _, 'content-length': __, connection: ___, ...headers } = incoming.headers;
  const outgoing = request(url, {
    method: incoming.method,
    headers: { ...headers, 'content-length': translated.length },
  });
  response.once('close', () => outgoing.destroy());
  outgoing.end(translated);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const bytes = await readAll(answer);
  const status = answer.statusCode ?? 500;
  if (status === 200) return void response.writeHead(200).end(bytes);
  const text = bytes.toString('utf8').trim();
  const code = /Code: (\d+)/.exec(text)?.[1] ?? '1002';
  const said = text.replace(/^Code: \d+, e\.displayText\(\) = /, '').replace(/, e\.what\(\).*$/s, '');
  response.writeHead(status, { 'X-ClickHouse-Exception-Code': code });
  response.end(`Code: ${code}. ${said}. (OF_AN_OLD_SERVER)`);
}

function translate(sql: string, parameters: ReadonlyMap<string, string>): string {
  const bound = sql.replace(/\{(\w+):([\w()]+)\}/g, (_, name: string, type: string) =>
    literal(type, parameters.get(name) ?? '\\N'),
  );
  if (!/^\s*(--.*\n|\s)*(create|alter)\b/i.test(bound)) return bound;
  return bound
    .replace(/ codec\((?:[^()]|\([^()]*\))*\)/g, '')
    .replace(/LowCardinality\((\w+)\)/g, '$1')
    .replace(/\nttl .*/g, '')
    .replace(/\nsettings[^;]*$/, '');
}

/** Parameters come escaped as in a tab-separated file. */
function literal(type: string, value: string): string {
  const inner = /^Nullable\((.*)\)$/.exec(type)?.[1];
  if (inner !== undefined && value === '\\N') return `CAST(NULL AS ${type})`;
  if (/^U?Int/.test(inner ?? type)) return `to${inner ?? type}(${value})`;
  return `'${value.replaceAll("'", "\\'")}'`; // what is escaped stays so: a text in SQL reads the same escapes
}

async function readAll(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
