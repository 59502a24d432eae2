// The compatibility promise for data directories: the program opens a directory that any earlier release wrote. Each archive was
// written by a release that was then killed (see README.md). A long retention keeps the records from expiring.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { sendLogs } from '../support/logs.ts';
import { createTempDirectory, type ServerProcess, startServer } from '../support/process.ts';

const readJson = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));
const { embedded } = readJson('expected.json');
const expected020 = readJson('expected-0.2.0.json');

interface Release {
  readonly version: string;
  readonly token: string;
  readonly kinds: Readonly<Record<string, { readonly count: number; readonly digest: string }>>;
}

const RELEASES: readonly Release[] = [
  { version: '0.1.0', token: embedded.tokens.platform, kinds: embedded.kinds },
  { version: '0.2.0', token: expected020.token, kinds: expected020.kinds },
];

describe.each(RELEASES)('a data directory of release $version', ({ version, token, kinds }) => {
  let directory: ReturnType<typeof createTempDirectory>;
  let server: ServerProcess;

  const start = async () => {
    const endpoints = join(import.meta.dirname, 'endpoints');
    const args = ['--data', directory.path, '--retention-days', '36500', '--endpoints', endpoints];
    server = await startServer(args);
  };
  const readContents = async () => {
    const url = `${server.url}/api/endpoints/query/upgrade.contents`;
    const { rows } = await fetchResponse(url, { headers: { 'X-API-KEY': token } });
    return Object.fromEntries(rows.map(({ kind, ...contents }) => [kind, contents]));
  };

  beforeEach(async () => {
    directory = createTempDirectory();
    const archive = join(import.meta.dirname, `embedded-${version}.tar.gz`);
    execFileSync('tar', ['-xzf', archive, '-C', directory.path]);
    await start();
  });
  afterEach(async () => {
    await server.stop();
    directory.remove();
  });

  test('opens with every record and token, accepts new records, and keeps all of them after another kill', async () => {
    await expect.poll(readContents).toEqual(kinds);
    const records = [{ id: 'new', project: 'alpha', message: 'new' }];
    expect((await sendLogs(server.internalUrl, records, { token })).accepted).toBe(1);
    server.signal('SIGKILL');
    await server.ended;
    await start();
    const edge = { count: (kinds['edge']?.count ?? 0) + 1, digest: expect.any(String) };
    await expect.poll(readContents).toEqual({ ...kinds, edge });
  });
});
