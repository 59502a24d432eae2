import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sized } from '../support/fault-report.ts';
import { createTempDirectory } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, queryStatus, serve } from './server.ts';
import { createSyncShim } from './sync-shim.ts';

const SYNC_MS = 500;
const SECONDS = sized(6, 60);

test('if every fsync takes 500 ms, senders wait, queries are served and no record is lost', async ({
  skip,
}) => {
  const shim = createSyncShim('') ?? skip('A SLOW DISK IS NOT TESTED HERE: it needs Linux and a C compiler');
  const directory = createTempDirectory();
  const ledger = new Ledger();
  const env = { ...shim.env, SYNC_DELAY_MS: String(SYNC_MS) };
  const server = await serve(directory.path, [], { env });
  try {
    const stop = new AbortController();
    const shapes = [
      { kinds: ['edge'], records: [4_000, 9_000] },
      { kinds: ['edge', 'auth'], records: [1, 20] },
    ] as const;
    const sending = [...shapes, ...shapes].map(shape =>
      ledger.keepSending(server.internalUrl, shape, stop.signal),
    );
    const queries = new Set<number | undefined>();
    for (let second = 0; second < SECONDS; second++) {
      queries.add(await queryStatus(server));
      await sleep(1_000);
    }
    stop.abort();
    await Promise.all(sending);
    const { code } = await server.stop();
    const outcome =
      `each fsync takes ${SYNC_MS} ms for ${SECONDS} s: senders get ${[...ledger.statuses.keys()].join(' and ')}, ` +
      `queries ${[...queries].join(' and ')}, exit code ${code}`;
    await auditAndReport({ fault: 'slow disk', runs: 1, outcome }, directory.path, ledger);
    expect([...queries]).toEqual([200]);
    expect(code).toBe(0);
  } finally {
    await kill(server);
    directory.remove();
    shim.remove();
  }
});
