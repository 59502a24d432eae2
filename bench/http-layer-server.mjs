// One of the servers that the load generator meets, by name:
//   bare    node:http, one buffer, two headers
//   layer   Dendro's listener, route table, token check, endpoint look-up and parameter rules; then a fixed answer
//   routes  Dendro's own routes over a store that answers 18 rows at once: the same, and writing the rows as JSON
// There is no store and no cache behind any of them.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { loadCatalog } from '../dist/endpoint/catalog.js';
import { encodeRows } from '../dist/endpoint/encode.js';
import { bindParameters } from '../dist/endpoint/parameters.js';
import { CONTENT_TYPES, chooseFormat } from '../dist/http/answer-format.js';
import { authenticate } from '../dist/http/authenticate.js';
import { listen } from '../dist/http/listener.js';
import { publicRoutes } from '../dist/http/public.js';
import { ALL_SCOPES, allows, hashSecret } from '../dist/token/token.js';
import { makeTokenSet } from '../dist/token/token-set.js';

const [kind, apiKey] = process.argv.slice(2);
const catalog = loadCatalog(
  { builtIn: join(import.meta.dirname, '..', 'endpoints'), own: undefined },
  'duckdb',
);
const { columns } = catalog.find('functions.invocation-stats').query;
const rows = makeRows();
const body = encodeRows(columns, rows, 'json');
const tokens = makeTokenSet([{ name: 'bench', sha256: hashSecret(apiKey), scopes: ALL_SCOPES }]);

const url = await { bare: startBare, layer: startLayer, routes: startRoutes }[kind]();
process.on('message', () => process.send(process.cpuUsage()));
process.on('disconnect', () => process.exit());
process.stdout.write(`ready: ${url}\n`);

/** Hourly statistics, 3.6 kB as JSON. */
function makeRows() {
  const hour = 3_600_000_000n;
  return Array.from({ length: 18 }, (_, index) => {
    const timestamp = 1_794_600_000_000_000n + BigInt(index) * hour;
    return [timestamp, 20 + index, 1987, 87.40612 + index, 412.5, 1203.25, 4821 + index, 311];
  });
}

function startBare() {
  const bytes = Buffer.from(body);
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': CONTENT_TYPES.json, 'Content-Length': bytes.length });
    response.end(bytes);
  });
  return new Promise(resolve =>
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`)),
  );
}

function startLayer() {
  return serve([
    {
      path: '/api/endpoints/query/*',
      methods: ['GET', 'HEAD'],
      answer({ request, rest, parameters }) {
        const token = authenticate(request.headers, tokens);
        const { definition } = catalog.find(rest);
        if (!allows(token, `query:${definition.name}`)) throw new Error('the token has every scope');
        const format = chooseFormat(parameters, request.headers.accept);
        bindParameters(definition, parameters);
        const headers = {
          'Content-Type': CONTENT_TYPES[format],
          'Cache-Control': 'no-store',
          Vary: 'X-API-KEY',
        };
        return { status: 200, headers, body };
      },
    },
  ]);
}

function startRoutes() {
  const store = { name: 'fixed', query: async () => ({ rows, cut: false }) };
  const service = { store, clock: () => 0n, tokens };
  return serve(
    publicRoutes({
      version: '0',
      storeName: 'duckdb',
      catalog,
      service: () => service,
      state: () => 'ok',
    }),
  );
}

async function serve(routes) {
  const listener = await listen('public', { host: '127.0.0.1', port: 0 }, routes, event => {
    throw event.error;
  });
  return listener.url;
}
