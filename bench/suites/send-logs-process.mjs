// One process that sends batches of logs to a server and counts the acknowledged records. Bodies are created before the clock
// starts. Usage: node send-logs-process.mjs URL SECONDS RECORDS-PER-SECOND [otlp]. 0 records per second: the maximum rate. Prints
// one line `result: …`.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createOtlpBody } from '../records/otlp-body.mjs';
import { createLines } from '../records/sent-records.mjs';
import { percentile, round } from '../tools/statistics.mjs';

const [url, seconds, rate, format] = process.argv.slice(2);
const isOtlp = format === 'otlp';
const BATCH_RECORDS = 1000;
const CONNECTIONS = 8;
const BODIES = Array.from({ length: 16 }, () =>
  isOtlp ? createOtlpBody(BATCH_RECORDS) : Buffer.from(createLines(BATCH_RECORDS).join('')),
);
const target = isOtlp ? `${url}/v1/logs` : `${url}/api/logs?source_name=edge`;
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

let acknowledged = 0;
let startedBatches = 0;
/** @type {Record<number, number>} */
const statuses = {};
/** @type {number[]} */
const latencies = [];
const start = performance.now();
const end = start + Number(seconds) * 1000;
await Promise.all(Array.from({ length: CONNECTIONS }, sendBatches));
const elapsedSeconds = (performance.now() - start) / 1000;
agent.destroy();
process.stdout.write(
  `result: ${JSON.stringify({
    recordsPerSecond: Math.round(acknowledged / elapsedSeconds),
    acknowledged,
    statuses,
    p50: round(percentile(latencies, 0.5), 1),
    p95: round(percentile(latencies, 0.95), 1),
  })}\n`,
);

async function sendBatches() {
  for (;;) {
    const batch = startedBatches++;
    if (rate !== '0')
      await sleep(Math.max(0, start + (batch * BATCH_RECORDS * 1000) / Number(rate) - performance.now()));
    if (performance.now() >= end) return;
    const sentAt = performance.now();
    const status = await post(BODIES[batch % BODIES.length], `${process.pid}-${batch}`);
    latencies.push(performance.now() - sentAt);
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (status === 200) acknowledged += BATCH_RECORDS;
    else await sleep(100);
  }
}

/**
 * Every batch has its own idempotency key, so that the server does not deduplicate it.
 * @param {Buffer} body @param {string} idempotencyKey
 * @returns {Promise<number>}
 */
function post(body, idempotencyKey) {
  return new Promise((resolve, reject) => {
    const headers = {
      'X-API-KEY': process.env['DENDRO_API_KEY'],
      'Content-Type': isOtlp ? 'application/x-protobuf' : 'application/x-ndjson',
      'Content-Length': body.length,
      'Idempotency-Key': idempotencyKey,
    };
    const sent = request(target, { method: 'POST', agent, headers }, response => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
