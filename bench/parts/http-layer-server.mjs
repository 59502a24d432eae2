// One of the two servers that the load generator meets, by name:
//   hit     the whole program on a small store, asked one question again and again, so that its cache answers
//   bare    node:http, and the very bytes that `hit` answers, in one buffer with two headers
// Records and clock are fixed, so both processes arrive at the same bytes.
import { createServer } from 'node:http';
import { startApp } from '../../dist/app.js';
import { toLogLines } from '../../dist/domain/log-line.js';
import { makeServeConfig, throwFaults } from '../tools/serve-config.mjs';

const [kind, apiKey, target, dataFolder] = process.argv.slice(2);
const NOW_MICROS = 1_794_659_696_789_012n;
const HOUR_MICROS = 3_600_000_000;

const app = await startApp(makeServeConfig(['--data', dataFolder], apiKey), throwFaults, () => NOW_MICROS);
await app.store.append(makeRecords());

const url = kind === 'hit' ? app.publicUrl : await startBare();
process.on('message', () => process.send(process.cpuUsage()));
process.on('disconnect', () => process.exit());
process.stdout.write(`ready: ${url}\n`);

/** Eighteen hours of invocations: an answer of about 3.6 kB. */
async function* makeRecords() {
  const records = Array.from({ length: 18 * 50 }, (_, index) => ({
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
  yield toLogLines('function_edge', records);
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
