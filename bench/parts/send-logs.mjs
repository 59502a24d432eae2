// One process that sends batches of logs to a server and counts what is acknowledged. What it sends is made before the
// time runs. Call: node send-logs.mjs URL SECONDS RECORDS-A-SECOND (0: as many as are taken). Prints one line of JSON.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeLines } from '../records/sent-records.mjs';
import { percentile, round } from '../tools/statistics.mjs';

const [url, seconds, rate] = process.argv.slice(2);
const BATCH = 1000;
const CONNECTIONS = 8;
const BODIES = Array.from({ length: 16 }, () => Buffer.from(makeLines(BATCH).join('')));
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

let acknowledged = 0;
let begun = 0;
const statuses = {};
const latencies = [];
process.stdout.write('ready: sending\n');
const start = performance.now();
const end = start + Number(seconds) * 1000;
await Promise.all(Array.from({ length: CONNECTIONS }, send));
const took = (performance.now() - start) / 1000;
agent.destroy();
process.stdout.write(
  `result: ${JSON.stringify({
    recordsPerSecond: Math.round(acknowledged / took),
    acknowledged,
    statuses,
    p50: round(percentile(latencies, 0.5), 1),
    p95: round(percentile(latencies, 0.95), 1),
  })}\n`,
);

async function send() {
  for (;;) {
    const number = begun++;
    if (rate !== '0')
      await sleep(Math.max(0, start + (number * BATCH * 1000) / Number(rate) - performance.now()));
    if (performance.now() >= end) return;
    const sentAt = performance.now();
    const status = await post(BODIES[number % BODIES.length], `${process.pid}-${number}`);
    latencies.push(performance.now() - sentAt);
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (status === 200) acknowledged += BATCH;
    else await sleep(100);
  }
}

/** Every batch is a new one to the server, by its key. */
function post(body, key) {
  return new Promise((resolve, reject) => {
    const headers = {
      'X-API-KEY': process.env.DENDRO_API_KEY,
      'Content-Type': 'application/x-ndjson',
      'Content-Length': body.length,
      'Idempotency-Key': key,
    };
    const call = request(`${url}/api/logs?source_name=edge`, { method: 'POST', agent, headers }, response => {
      response.resume();
      response.once('end', () => resolve(response.statusCode));
    });
    call.once('error', reject);
    call.end(body);
  });
}
