// Steps of the system clock under a running server, with libfaketime: it changes the time of day and not the monotonic clock.
// test/intake/retention.test.ts lets the hours pass after which records are removed.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { isFullSize, sized } from '../support/fault-report.ts';
import { createTempDirectory } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, queryStatus, serve } from './server.ts';

const STEPS = ['+1h', '+0', '-1h', '+0', '+365d', '+0', '+365d'];
const SHAPE = { kinds: ['edge', 'auth'], records: [1, 200] } as const;

/** Returns the path of the library, or undefined if it cannot be installed. */
function findFakeTime(): string | undefined {
  if (process.platform !== 'linux' || ensurePrograms({ faketime: ['faketime'] }).length > 0) return undefined;
  return readdirSync('/usr/lib') // one directory of it is named after the architecture
    .map(name => join('/usr/lib', name, 'faketime/libfaketimeMT.so.1'))
    .find(existsSync);
}

test('steps of the clock by an hour and by a year lose no record, before and after a restart', async ({
  skip,
}) => {
  const library =
    findFakeTime() ?? skip('CLOCK STEPS ARE NOT TESTED HERE: they need Linux and Debian’s faketime');
  const directory = createTempDirectory();
  const ledger = new Ledger();
  const clockFile = join(directory.path, 'clock');
  const step = (offset: string) => writeFileSync(clockFile, `${offset}\n`);
  const data = join(directory.path, 'data');
  const env = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: clockFile,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
  step('+0');
  let server = await serve(data, [], { env });
  try {
    const statuses = new Set<number | undefined>();
    const send = async () => {
      for (let batch = 0; batch < 10; batch++)
        statuses.add(await ledger.send(server.internalUrl, ledger.createBatch(SHAPE)));
      statuses.add(await queryStatus(server));
    };
    for (const offset of STEPS) {
      await send();
      step(offset);
      await sleep(sized(200, 70_000)); // the clock is compared with the timer once a minute
      await send();
    }
    const warnings = server
      .stderr()
      .split('\n')
      .filter(line => line.includes('the clock jumped by')).length;
    const times = [...server.stderr().matchAll(/"time":"([^"]+)"/g)].map(([, time = '']) => Date.parse(time));
    const isInNextYear = Math.max(...times) > Date.now() + 300 * 86_400_000;
    await kill(server);
    server = await serve(data, [], { env });
    await send();
    await kill(server);
    const outcome =
      `requests get ${[...statuses].join(' and ')}; nothing is deleted` +
      `${isFullSize ? `; ${warnings} warnings in the log` : ''}`;
    await auditAndReport({ fault: 'clock steps', runs: STEPS.length, outcome }, data, ledger);
    expect([...statuses]).toEqual([200]);
    if (isFullSize) expect([warnings, isInNextYear]).toEqual([STEPS.length, true]);
  } finally {
    await kill(server);
    directory.remove();
  }
});
