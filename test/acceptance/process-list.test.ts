import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const BIN = join(import.meta.dirname, '../../bin/dendro');

test.each([
  [
    'a token',
    (url: string) => [
      'query',
      'logs.all',
      '--project',
      'a',
      '--url',
      url,
      '--token',
      'a-secret-to-be-hidden',
    ],
  ],
  [
    'the password of a store',
    (url: string) => [
      'check',
      '--store',
      url.replace('http://', 'clickhouse://dendro:a-secret-to-be-hidden@'),
    ],
  ],
])('%s in a flag does not appear in the process list', async (_, argsFor) => {
  // A server that accepts the connection and never responds, so that the command keeps running.
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const child = spawn(process.execPath, [BIN, ...argsFor(url)], { stdio: 'ignore' });
  try {
    const [socket] = await once(silent, 'connection');
    const shown = readCommandLine(child.pid);
    expect(shown).toContain('dendro');
    expect(shown).not.toContain('a-secret');
    socket.destroy();
  } finally {
    child.kill('SIGKILL');
    silent.close();
  }
});

/** As every user of the machine can read it. A small Linux system may lack `ps`, which reads the same file. */
function readCommandLine(pid: number | undefined): string {
  return process.platform === 'linux'
    ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    : execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
}
