import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { ROW_GROUP_ROWS } from '../../src/store/duckdb/parts.ts';
import { makeFolder, PROCESS_API_KEY, startServer } from '../support/process.ts';
import { takeAccount } from './account.ts';
import { Ledger, type Shape, send } from './load.ts';

const KILLS = 24;
const MOST_KILLS = 60;
/** Units are sealed by the row group: this many records mean several seals among the kills. */
const ENOUGH_RECORDS = 5 * ROW_GROUP_ROWS;

const SENDERS: Shape[] = [
  { kinds: ['edge'], records: [4_000, 9_000] },
  { kinds: ['edge'], records: [1_000, 1_000] },
  { kinds: LOG_KINDS, records: [1, 20] },
  { kinds: LOG_KINDS, records: [1, 1] },
];

test('after kill -9 at random moments every acknowledged record is there once, others once or not at all', {
  timeout: 300_000,
}, async () => {
  const folder = makeFolder();
  const ledger = new Ledger();
  let settledDoubts = 0;
  try {
    let kills = 0;
    while (kills < KILLS || (ledger.acknowledgedRecords < ENOUGH_RECORDS && kills < MOST_KILLS)) {
      const server = await startServer(['--data', folder.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
      try {
        // What a shipper does that got no answer: it sends the same again. Every other one is left in doubt.
        const doubts = ledger.batches.filter(batch => !batch.acknowledged && batch.number % 2 === 0);
        for (const batch of doubts) expect(await send(server.internalUrl, batch)).toBe(200);
        settledDoubts += doubts.length;
        const stop = new AbortController();
        const sending = SENDERS.map(shape => ledger.sendOn(server.internalUrl, shape, stop.signal));
        await sleep(50 + Math.random() * 900);
        // Now and then it is asked to stop instead, under the same load.
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
    const { wrong, partly, records, sealed } = await takeAccount(folder.path, ledger);
    expect(wrong).toEqual([]);
    expect(partly).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(20);
    expect(settledDoubts).toBeGreaterThan(0);
    expect(records).toBeGreaterThanOrEqual(ledger.acknowledgedRecords);
    expect(sealed).toBeGreaterThanOrEqual(ROW_GROUP_ROWS);
    console.info(
      `${kills} kills, ${ledger.acknowledgedRecords} acknowledged, ${records} there, ${sealed} sealed`,
    );
  } finally {
    folder.remove();
  }
});
