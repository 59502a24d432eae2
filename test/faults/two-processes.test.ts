import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sized } from '../support/fault-report.ts';
import { createTempDirectory, onlyLine, spawnDendro } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, serve } from './server.ts';

const RUNS = sized(1, 10);

test('commands on a data directory in use fail with one line, and the server keeps every acknowledged record', async () => {
  const directory = createTempDirectory();
  const data = join(directory.path, 'data');
  const ledger = new Ledger();
  const server = await serve(data);
  const file = join(directory.path, 'a.ndjson');
  writeFileSync(file, '{"project":"p0","message":"m","id":"0-0"}\n');
  const commands = [
    ['serve', '--data', data],
    ['ingest', file, '--source', 'edge', '--data', data],
    ['query', 'logs.all', '--project', 'p0', '--data', data],
    ['erase', '--project', 'p0', '--yes', '--data', data],
    ['backup', join(directory.path, 'backup'), '--data', data],
  ];
  try {
    const stop = new AbortController();
    const shape = { kinds: ['edge'], records: [1, 500] } as const;
    const sending = ledger.keepSending(server.internalUrl, shape, stop.signal);
    const outcomes = [];
    for (let run = 0; run < RUNS; run++)
      for (const command of commands) outcomes.push(await spawnDendro(command));
    stop.abort();
    await sending;
    const codes = new Set(outcomes.map(({ code }) => code));
    const lines = new Set(outcomes.map(onlyLine));
    await kill(server);
    const outcome = `the second process prints one line that names the first one, exit code ${[...codes].join(', ')}`;
    const row = { fault: 'two processes on one data directory', runs: outcomes.length, outcome };
    await auditAndReport(row, data, ledger);
    expect([...codes]).toEqual([1]);
    for (const line of lines) expect(line).toContain(`is in use by another process (PID ${server.pid})`);
  } finally {
    await kill(server);
    directory.remove();
  }
});
