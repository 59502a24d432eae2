import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sized } from '../support/fault-report.ts';
import { createTempDirectory } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, type ProcessUse, queryStatus, readUse, serve } from './server.ts';

const MIB = 1024 * 1024;
const MINUTES = sized(0.4, 10);
/** Two segments of the spool, which is kept until the next start. */
const SPOOL_BYTES = 64 * MIB;
/** Between two batches of a sender. A memtable of 122,880 records is full, and is flushed, every few seconds. */
const PAUSE_MS = sized(80, 180);
const SAMPLE_MS = sized(500, 2_000);
/** Node and DuckDB start threads and open descriptors when they first need them, and free memory late. */
const MAX_THREAD_GROWTH = 4;
const MAX_DESCRIPTOR_GROWTH = 10;
const MAX_MEMORY_GROWTH = 150 * MIB;

function measureFiles(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .reduce(
      (sum, entry) =>
        sum + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
}

const toMib = (bytes: number) => (bytes / MIB).toFixed(0);

const average = (samples: readonly ProcessUse[], key: keyof ProcessUse) =>
  samples.reduce((sum, sample) => sum + sample[key], 0) / samples.length;

test('a server under steady load does not grow in memory, descriptors, threads, or disk space beyond its records', async () => {
  const directory = createTempDirectory();
  const ledger = new Ledger();
  const server = await serve(directory.path);
  const samples: ProcessUse[] = [];
  let sentBytes = 0;
  try {
    const end = performance.now() + MINUTES * 60_000;
    const keepSending = async () => {
      while (performance.now() < end) {
        const batch = ledger.createCheapBatch();
        sentBytes += batch.body().length;
        expect(await ledger.send(server.internalUrl, batch)).toBe(200);
        await sleep(PAUSE_MS);
      }
    };
    const keepQuerying = async () => {
      for (; performance.now() < end; await sleep(100)) expect(await queryStatus(server)).toBe(200);
    };
    const keepSampling = async () => {
      for (; performance.now() < end; await sleep(SAMPLE_MS)) samples.push(readUse(server));
    };
    await Promise.all([keepSending(), keepSending(), keepQuerying(), keepSampling()]);
    const { code } = await server.stop();
    const quarter = Math.floor(samples.length / 4);
    const [early, late] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)];
    const growth = (key: keyof ProcessUse) => average(late, key) - average(early, key);
    const diskBytes = measureFiles(directory.path);
    const outcome =
      `${MINUTES} minutes, ${ledger.acknowledgedRecords} records: growth from the second to the last quarter: ` +
      `${Math.round(growth('rssBytes') / MIB)} MiB of memory, ${Math.round(growth('descriptors'))} descriptors, ` +
      `${Math.round(growth('threads'))} threads; ${toMib(diskBytes)} MiB on disk for ${toMib(sentBytes)} MiB sent`;
    await auditAndReport({ fault: 'soak', runs: 1, outcome }, directory.path, ledger);
    expect(growth('rssBytes')).toBeLessThan(MAX_MEMORY_GROWTH);
    expect(growth('descriptors')).toBeLessThan(MAX_DESCRIPTOR_GROWTH);
    expect(growth('threads')).toBeLessThan(MAX_THREAD_GROWTH);
    expect(diskBytes).toBeLessThan(sentBytes + SPOOL_BYTES);
    expect(code).toBe(0);
  } finally {
    await kill(server);
    directory.remove();
  }
});
