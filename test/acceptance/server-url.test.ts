import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { onlyLine, PROCESS_API_KEY, runDendro } from '../support/process.ts';

const env = { DENDRO_API_KEY: PROCESS_API_KEY };
const COMMANDS = [
  ['ingest', '-', '--source', 'edge'],
  ['query', 'logs.all', '--project', 'p'],
  ['query', 'logs.all', '--project', 'p', '--csv'],
];
const run = (command: readonly string[], url: string) =>
  runDendro([...command, '--url', url], { env, input: '{"project":"p","message":"m"}\n' });

describe.each(COMMANDS)('dendro %s %s %s %s %s --url', (...command) => {
  let server: Server;
  beforeAll(async () => {
    server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<html>'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => server.close());

  test('a server that is not Dendro is reported in one line', async () => {
    const outcome = await run(command, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(outcome).toMatchObject({ code: 1, stdout: '' });
    expect(onlyLine(outcome)).toMatch(/is it the (public listener of Dendro|internal listener)\?/);
  });
});
