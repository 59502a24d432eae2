// The commands that send requests to a server: one line if its URL or the token is wrong.
import { readdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createTempDirectory,
  findFreePort,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerHere,
  startServerHere,
} from '../support/process.ts';

const target = createTempDirectory();
const data = createTempDirectory();
const COMMANDS: readonly [listener: 'public' | 'internal', command: readonly string[]][] = [
  ['internal', ['ingest', '-', '--source', 'edge']],
  ['internal', ['backup', join(target.path, 'backup')]],
  ['public', ['query', 'logs.all', '--project', 'p']],
  ['public', ['query', 'logs.all', '--project', 'p', '--csv']],
  ['public', ['types']],
];

let other: Server;
let server: ServerHere;
beforeAll(async () => {
  other = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<html>'));
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve));
  server = await startServerHere(['--data', data.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
});
afterAll(async () => {
  other.close();
  await server.stop();
  for (const directory of [target, data]) directory.remove();
});

describe.each(COMMANDS)('on the %s listener, dendro %j', (listener, command) => {
  const expectLine = async (url: string, token: string, code: number, words: string | RegExp) => {
    const input = '{"project":"p","message":"m"}\n';
    const outcome = await runDendro([...command, '--url', url, '--token', token], { input });
    expect(outcome).toMatchObject({ code, stdout: '' });
    expect(onlyLine(outcome)).toMatch(words);
    expect(outcome.stderr).not.toContain(token);
    expect(readdirSync(target.path)).toEqual([]);
  };

  test('reports a server that is not Dendro', async () => {
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const words = /is it the (public listener of Dendro|internal listener)\?|the download is not complete/;
    await expectLine(url, PROCESS_API_KEY, 1, words);
  });

  test('reports the other listener', async () => {
    const url = listener === 'public' ? server.internalUrl : server.url;
    const variable = listener === 'public' ? 'DENDRO_URL' : 'DENDRO_INTERNAL_URL';
    const words = `${url} is not the ${listener} listener of Dendro: set --url or ${variable} to its URL`;
    await expectLine(url, PROCESS_API_KEY, 2, words);
  });

  test('reports a wrong token', async () => {
    const url = listener === 'public' ? server.url : server.internalUrl;
    await expectLine(url, 'wrong-token', 1, 'unknown, expired or revoked');
  });

  if (command[0] !== 'ingest')
    // it repeats its requests for minutes
    test('reports a URL where nothing listens', async () => {
      const url = `http://127.0.0.1:${await findFreePort()}`;
      await expectLine(url, PROCESS_API_KEY, 1, url);
    });
});
