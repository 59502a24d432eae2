import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { ROW_GROUP_ROWS } from '../../src/store/duckdb/parts.ts';
import { createTempDirectory, PROCESS_API_KEY, startServer } from '../support/process.ts';
import { auditDataDirectory } from './audit.ts';
import { type BatchShape, Ledger, send } from './load.ts';

const MIN_KILLS = 24;
const MAX_KILLS = 60;
/** The memtable is flushed one row group at a time, so this many records cause several flushes between the kills. */
const MIN_RECORDS = 5 * ROW_GROUP_ROWS;

const SENDERS: BatchShape[] = [
  { kinds: ['edge'], records: [4_000, 9_000] },
  { kinds: ['edge'], records: [1_000, 1_000] },
  { kinds: LOG_KINDS, records: [1, 20] },
  { kinds: LOG_KINDS, records: [1, 1] },
];

test('after kill -9 at random moments every acknowledged record is stored once, and any other once or not at all', {
  timeout: 300_000,
}, async () => {
  const dataDirectory = createTempDirectory();
  const ledger = new Ledger();
  let retriedBatches = 0;
  try {
    let kills = 0;
    while (kills < MIN_KILLS || (ledger.acknowledgedRecords < MIN_RECORDS && kills < MAX_KILLS)) {
      const server = await startServer(['--data', dataDirectory.path], {
        env: { DENDRO_API_KEY: PROCESS_API_KEY },
      });
      try {
        // A shipper that got no response sends the same batch again. Half of these batches are not retried.
        const unacknowledged = ledger.batches.filter(batch => !batch.acknowledged && batch.number % 2 === 0);
        for (const batch of unacknowledged) expect(await send(server.internalUrl, batch)).toBe(200);
        retriedBatches += unacknowledged.length;
        const stop = new AbortController();
        const sending = SENDERS.map(shape => ledger.keepSending(server.internalUrl, shape, stop.signal));
        await sleep(50 + Math.random() * 900);
        // One time in ten it gets SIGTERM under the same load instead.
        const isKill = Math.random() < 0.9;
        server.signal(isKill ? 'SIGKILL' : 'SIGTERM');
        if (isKill) kills++;
        else expect((await server.ended).code).toBe(0);
        stop.abort();
        await Promise.all(sending);
      } finally {
        server.signal('SIGKILL');
        await server.ended;
      }
    }
    const { wrong, partial, records, flushed } = await auditDataDirectory(dataDirectory.path, ledger);
    expect(wrong).toEqual([]);
    expect(partial).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(20);
    expect(retriedBatches).toBeGreaterThan(0);
    expect(records).toBeGreaterThanOrEqual(ledger.acknowledgedRecords);
    expect(flushed).toBeGreaterThanOrEqual(ROW_GROUP_ROWS);
    console.info(
      `${kills} kills, ${ledger.acknowledgedRecords} acknowledged, ${records} stored, ${flushed} flushed`,
    );
  } finally {
    dataDirectory.remove();
  }
});
