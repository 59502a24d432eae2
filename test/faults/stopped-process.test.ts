import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sized } from '../support/fault-report.ts';
import { createTempDirectory } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, queryStatus, serve } from './server.ts';

const STOPPED_SECONDS = sized(4, 60);

test('a server that is stopped by SIGSTOP under load continues after SIGCONT, with every acknowledged record', async () => {
  const directory = createTempDirectory();
  const ledger = new Ledger();
  const server = await serve(directory.path);
  try {
    const stop = new AbortController();
    const shape = { kinds: ['edge'], records: [1, 500] } as const;
    const sending = [0, 1, 2].map(() => ledger.keepSending(server.internalUrl, shape, stop.signal));
    await sleep(1_000);
    server.signal('SIGSTOP');
    const waiting = queryStatus(server).then(status => status ?? 'none'); // sent while the process does not run
    await sleep(STOPPED_SECONDS * 1000);
    server.signal('SIGCONT');
    await sleep(1_000);
    stop.abort();
    await Promise.all(sending);
    const statuses = await ledger.resend(server.internalUrl);
    expect(statuses.filter(status => status !== 200)).toEqual([]);
    const [after, code] = [await queryStatus(server), (await server.stop()).code];
    const outcome =
      `stopped for ${STOPPED_SECONDS} s: requests wait` +
      `${ledger.refusals === '' ? '' : ` or get ${ledger.refusals}`}; then queries get ${after}, exit code ${code}`;
    await auditAndReport({ fault: 'SIGSTOP', runs: 1, outcome }, directory.path, ledger);
    expect([200, 'none']).toContain(await waiting);
    expect([after, code]).toEqual([200, 0]);
  } finally {
    server.signal('SIGCONT');
    await kill(server);
    directory.remove();
  }
});
