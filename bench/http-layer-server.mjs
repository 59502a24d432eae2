// One of the two servers that the load generator meets, by name:
//   hit     the whole program on a small store, asked one question again and again, so that its cache answers
//   bare    node:http, and the very bytes that `hit` answers, in one buffer with two headers
// Records and clock are fixed, so both processes arrive at the same bytes.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { startApp } from '../dist/app.js';

const [kind, apiKey, target, dataFolder] = process.argv.slice(2);
const NOW_MICROS = 1_794_659_696_789_012n;
const HOUR_MICROS = 3_600_000_000;

const app = await startApp(
  {
    publicAddress: { host: '127.0.0.1', port: 0 },
    internalAddress: { host: '127.0.0.1', port: 0 },
    storeName: 'duckdb',
    store: {
      dataFolder,
      memoryLimit: '500MB',
      queryConcurrency: 8,
      queryQueueLength: 256,
      queryTimeoutSeconds: 30,
    },
    retentionDays: 90,
    cacheBytes: 64 * 1024 * 1024,
    warmConcurrency: 1,
    endpointFolders: { builtIn: join(import.meta.dirname, '..', 'endpoints'), own: undefined },
    tokensFile: join(dataFolder, 'tokens.json'),
    corsOrigins: [],
    tls: undefined,
    apiKey,
  },
  event => {
    throw event.error;
  },
  () => NOW_MICROS,
);
await app.store.append('function_edge', makeRecords());

const url = kind === 'hit' ? app.publicUrl : await startBare();
process.on('message', () => process.send(process.cpuUsage()));
process.on('disconnect', () => process.exit());
process.stdout.write(`ready: ${url}\n`);

/** Eighteen hours of invocations: an answer of about 3.6 kB. */
async function* makeRecords() {
  yield Array.from({ length: 18 * 50 }, (_, index) => ({
    id: String(index),
    timestampMicros: Number(NOW_MICROS) - (index % 18) * HOUR_MICROS,
    project: 'abcdefghijklmnopqrst',
    eventMessage: 'POST | 200',
    metadata: '{}',
    lifted: {
      function_id: 'hello',
      execution_time_ms: 20.25 + ((index * 7919) % 1987),
      status_code: index % 13 === 0 ? 500 : 200,
    },
  }));
}

async function startBare() {
  const response = await fetch(`${app.publicUrl}${target}`, { headers: { 'X-API-KEY': apiKey } });
  const bytes = Buffer.from(await response.arrayBuffer());
  await app.close();
  const server = createServer((_, answer) => {
    answer.writeHead(200, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': bytes.length,
    });
    answer.end(bytes);
  });
  return new Promise(resolve =>
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`)),
  );
}
