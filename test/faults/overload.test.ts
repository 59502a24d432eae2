import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sized } from '../support/fault-report.ts';
import { createTempDirectory, type ServerProcess } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, queryStatus, readMetric, readUse, serve } from './server.ts';

const MIB = 1024 * 1024;
const CAPACITY_SECONDS = sized(2, 10);
const OVERLOAD_SECONDS = sized(6, 60);
const FACTOR = 4;
/** Bounds the load: a sender beyond it does not send. */
const MAX_REQUESTS_IN_FLIGHT = 600;
const TICK_MS = 20;
/** The memory limit of the store is 500 MB. */
const MAX_PEAK_BYTES = 1_500 * MIB;

/** The batches per second that the server accepts from senders that wait for each response. */
async function measureCapacity(server: ServerProcess, ledger: Ledger): Promise<number> {
  const end = performance.now() + CAPACITY_SECONDS * 1000;
  const keepSending = async () => {
    while (performance.now() < end) await ledger.send(server.internalUrl, ledger.createCheapBatch());
  };
  await Promise.all([0, 1, 2, 3].map(keepSending));
  return ledger.batches.length / CAPACITY_SECONDS;
}

/** Sends that many batches per second, and a query every second, without waiting for the responses. */
async function overload(server: ServerProcess, ledger: Ledger, batchesPerSecond: number) {
  const start = performance.now();
  const inFlight = new Set<Promise<unknown>>();
  const track = (request: Promise<unknown>) => {
    inFlight.add(request);
    void request.finally(() => inFlight.delete(request));
  };
  const queries = new Set<number | undefined>();
  let [due, nextQuery] = [0, 0];
  for (let elapsed = 0; elapsed < OVERLOAD_SECONDS; elapsed = (performance.now() - start) / 1000) {
    for (; due < elapsed * batchesPerSecond; due++)
      if (inFlight.size < MAX_REQUESTS_IN_FLIGHT)
        track(ledger.send(server.internalUrl, ledger.createCheapBatch()));
    if (elapsed >= nextQuery) {
      track(queryStatus(server).then(status => queries.add(status)));
      nextQuery++;
    }
    await sleep(TICK_MS);
  }
  await Promise.all(inFlight);
  return queries;
}

test('with four times the load that it can take, the server stays within bounds and recovers', async () => {
  const directory = createTempDirectory();
  const ledger = new Ledger();
  const server = await serve(directory.path);
  try {
    const capacity = await measureCapacity(server, ledger);
    const queries = await overload(server, ledger, FACTOR * capacity);
    const { peakBytes } = readUse(server);
    await expect.poll(() => readMetric(server, 'dendro_intake_queue_bytes'), { timeout: 60_000 }).toBe(0);
    const retries = await ledger.resend(server.internalUrl, 100);
    const after = await queryStatus(server);
    await kill(server);
    const outcome =
      `${FACTOR} times the load that the server can take, for ${OVERLOAD_SECONDS} s: senders get 200${ledger.refusals === '' ? '' : ` or ${ledger.refusals}`}, ` +
      `queries get ${[...queries].join(' and ')}; memory stays below ${Math.ceil(peakBytes / MIB / 100) * 100} MiB; ` +
      `afterwards all requests get ${[...new Set([after, ...retries])].join(' and ')}`;
    await auditAndReport({ fault: 'overload', runs: 1, outcome }, directory.path, ledger);
    expect(peakBytes).toBeLessThan(MAX_PEAK_BYTES);
    expect([...new Set([after, ...retries])]).toEqual([200]);
    expect(ledger.statuses.get('none') ?? 0).toBe(0);
  } finally {
    await kill(server);
    directory.remove();
  }
});
