import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sized } from '../support/fault-report.ts';
import { createTempDirectory, runDendro } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';

const KILLS = sized(5, 50);
/** About the time of a load: the program starts, parses the file and commits. */
const [MIN_DELAY_MS, MAX_DELAY_MS] = [150, 1_200];

test('a file that a killed dendro ingest has loaded partly is loaded completely and once by the next run', async () => {
  const directory = createTempDirectory();
  const data = join(directory.path, 'data');
  const ledger = new Ledger();
  let killed = 0;
  try {
    while (killed < KILLS) {
      const batch = ledger.createBatch({ kinds: ['edge', 'postgres'], records: [20_000, 40_000] });
      const file = join(directory.path, `${batch.number}.ndjson.gz`);
      writeFileSync(file, batch.body());
      const args = ['ingest', file, '--source', batch.kind, '--data', data];
      const killAfterMs = MIN_DELAY_MS + Math.random() * (MAX_DELAY_MS - MIN_DELAY_MS);
      const first = await runDendro(args, { killAfterMs });
      if (first.code === null) killed++;
      // One file in four stays as the killed load left it: completely loaded or not at all.
      if (batch.number % 4 === 3 && first.code === null) continue;
      const second = await runDendro(args);
      expect(second).toMatchObject({ code: 0, stderr: '' });
      batch.acknowledged = true;
    }
    const outcome = 'the same command loads the rest of the file; exit code 0';
    await auditAndReport({ fault: 'kill -9 during `dendro ingest`', runs: killed, outcome }, data, ledger);
  } finally {
    directory.remove();
  }
});
