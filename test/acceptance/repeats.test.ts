// The requests by which repeats are recognized: their memory, in processes with a small heap.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createTempDirectory, PROCESS_API_KEY, startServer } from '../support/process.ts';

test('the requests of the last 10 minutes, 300 MB with all of their errors, fit in a heap of 64 MB', () => {
  const program = `
    import { Idempotency } from ${JSON.stringify(join(import.meta.dirname, '../../dist/intake/idempotency.js'))};
    import { hash } from 'node:crypto';
    const idempotency = new Idempotency({ directory: '', maxBytes: 16 * 1024 * 1024, timer: performance, clock: () => 0n });
    for (let n = 0; n < 30_000; n++) {
      const digest = hash('sha256', String(n));
      const errors = Array.from({ length: 20 }, (_, i) => ({ index: i, code: 'no_project', message: digest.repeat(8) + i }));
      const batch = { kind: 'edge', accepted: 1, rejectedByCode: { no_project: 20 }, errors };
      const claim = await idempotency.claim({ sender: 's', kind: 'edge' }, { batches: [batch], digest, allHaveIdentity: true }, 0);
      claim.stored(1);
      claim.end(true);
    }
    console.log(idempotency.bytes <= 16 * 1024 * 1024);`;
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--max-old-space-size=64', '--input-type=module', '-e', program],
    { encoding: 'utf8' },
  );
  expect({ stdout, stderr, status }).toEqual({ stdout: 'true\n', stderr: '', status: 0 });
});

test('a server with a heap of 64 MB starts with an idempotency log of 100 MB', async () => {
  const directory = createTempDirectory();
  const env = { DENDRO_API_KEY: PROCESS_API_KEY };
  try {
    mkdirSync(join(directory.path, 'data'));
    mkdirSync(join(directory.path, 'data', 'spool'));
    writeLog(join(directory.path, 'data', 'spool', '000000000001.requests'), 10_000);
    const server = await startServer(['--data', 'data'], {
      cwd: directory.path,
      env: { ...env, NODE_OPTIONS: '--max-old-space-size=64' },
    });
    const { status } = await fetch(`${server.url}/health`);
    expect(status).toBe(200);
    await server.stop();
  } finally {
    directory.remove();
  }
});

/** Writes a log as version 0.2.0 did, with 20 errors for each request. */
function writeLog(path: string, count: number): void {
  const file = openSync(path, 'w');
  const errors = Array.from({ length: 20 }, (_, index) => ({
    index,
    code: 'no_project',
    message: 'x'.repeat(450),
  }));
  const atMicros = Date.now() * 1000;
  for (let n = 0; n < count; n += 100) {
    const lines = Array.from({ length: 100 }, (_, i) =>
      JSON.stringify({
        key: String(n + i).padStart(32, 'k'),
        digest: 'd'.repeat(64),
        atMicros,
        answer: { accepted: 1, rejected: 20, errors },
      }),
    );
    writeSync(file, `${lines.join('\n')}\n`);
  }
  closeSync(file);
}
