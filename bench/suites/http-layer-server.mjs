// One of the two servers of the suite `http-layer`:
//   hit     the whole program with a small store; every request but the first is a cache hit
//   bare    node:http with the response body of `hit` in one buffer and two headers
// Records and clock are fixed, so that both processes serve the same bytes.
// Usage: node http-layer-server.mjs hit|bare API-KEY TARGET DATA-DIRECTORY
import { createServer } from 'node:http';
import { createServeConfig, startApp, throwOnError, toLogLines } from '../tools/dendro-modules.mjs';
import { portOf } from '../tools/system.mjs';

const [variant, apiKey, target, dataDirectory] = process.argv.slice(2);
const NOW_MICROS = 1_794_659_696_789_012n;
const HOUR_MICROS = 3_600_000_000;

const config = createServeConfig(['--data', dataDirectory], apiKey);
const app = await startApp(config, throwOnError, { clock: () => NOW_MICROS });
await app.store.append(createRecords());

const url = variant === 'hit' ? app.publicUrl : await startBareServer();
process.on('message', () => process.send?.(process.cpuUsage()));
process.on('disconnect', () => process.exit());
process.stdout.write(`ready: ${url}\n`);

/** Invocations of 18 hours, which make a response body of about 3.6 kB. */
async function* createRecords() {
  const records = Array.from({ length: 18 * 50 }, (_, index) => ({
    id: String(index),
    timestampMicros: Number(NOW_MICROS) - (index % 18) * HOUR_MICROS,
    project: 'abcdefghijklmnopqrst',
    eventMessage: 'POST | 200',
    metadata: '{}',
    extracted: {
      function_id: 'hello',
      execution_time_ms: 20.25 + ((index * 7919) % 1987),
      status_code: index % 13 === 0 ? 500 : 200,
    },
  }));
  yield toLogLines('function_edge', records);
}

/** @returns {Promise<string>} */
async function startBareServer() {
  const response = await fetch(`${app.publicUrl}${target}`, { headers: { 'X-API-KEY': apiKey } });
  const bytes = Buffer.from(await response.arrayBuffer());
  await app.close();
  const server = createServer((_, serverResponse) => {
    serverResponse.writeHead(200, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': bytes.length,
    });
    serverResponse.end(bytes);
  });
  return new Promise(resolve =>
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${portOf(server)}`)),
  );
}
