// The same content is loaded once by `dendro ingest`, and requests to a server are retried.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createTempDirectory, PROCESS_API_KEY, runDendro, startServerHere } from '../support/process.ts';

const env = { DENDRO_API_KEY: PROCESS_API_KEY };
const BIN = join(import.meta.dirname, '../../bin/dendro');
/** Without ids and timestamps: nothing but the content identifies them. */
const LINES = '{"project":"alpha","message":"one"}\n{"project":"alpha","message":"two"}\n';
const ALREADY_LOADED =
  /^[\w. ]+: already loaded at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, 2 records; use --again to load it a second time\n$/;

let directory: ReturnType<typeof createTempDirectory>;
const checkout = process.cwd();
beforeEach(() => {
  directory = createTempDirectory();
  process.chdir(directory.path);
});
afterEach(() => {
  process.chdir(checkout);
  directory.remove();
});

const write = (name: string, content: string | Buffer) => {
  writeFileSync(join(directory.path, name), content);
  return name;
};
const ingest = (args: readonly string[], input?: string | Buffer) =>
  runDendro(['ingest', '--data', 'data', '--source', 'edge', ...args], input === undefined ? {} : { input });
const queryMessages = async () => {
  const args = ['query', 'logs.all', '--data', 'data', '--project', 'alpha', '--json'];
  const { stdout } = await runDendro(args);
  return (JSON.parse(stdout) as { result: { event_message: string }[] }).result
    .map(row => row.event_message)
    .sort();
};

describe('dendro ingest into a data directory', () => {
  test('the same content is loaded once, unless --again is given or the file has grown', async () => {
    const file = write('a.ndjson', LINES);
    const compressed = write('a.ndjson.gz', gzipSync(LINES));
    const lines = (await ingest([file, compressed, '-'], LINES)).stdout.split(/(?<=\n)/);
    expect(lines).toEqual([
      'a.ndjson: 2 accepted, 0 rejected\n',
      expect.stringMatching(ALREADY_LOADED),
      expect.stringMatching(ALREADY_LOADED),
    ]);
    expect(await ingest([file])).toEqual({
      code: 0,
      stdout: expect.stringMatching(ALREADY_LOADED),
      stderr: '',
    });
    expect(await queryMessages()).toEqual(['one', 'two']);
    expect((await ingest([file, '--again'])).stdout).toBe('a.ndjson: 2 accepted, 0 rejected\n');
    appendFileSync(join(directory.path, file), '{"project":"alpha","message":"three"}\n');
    expect((await ingest([file])).stdout).toBe('a.ndjson: 3 accepted, 0 rejected\n');
    expect(await queryMessages()).toEqual(['one', 'one', 'one', 'three', 'two', 'two', 'two']);
  });

  test('content is loaded again after an erasure, but only the erased records', async () => {
    const content = `${LINES}{"project":"beta","message":"three"}\n`;
    const file = write('a.ndjson', content);
    const compressed = write('a.ndjson.gz', gzipSync(content));
    const erase = (project: string) => runDendro(['erase', '--project', project, '--yes', '--data', 'data']);
    await ingest([file]);
    expect((await erase('alpha')).stdout).toContain('2 stored');
    expect((await ingest([compressed])).stdout).toBe('a.ndjson.gz: 2 accepted, 0 rejected\n');
    expect((await ingest([file])).stdout).toContain('a.ndjson: already loaded');
    expect(await queryMessages()).toEqual(['one', 'two']);
    expect((await erase('beta')).stdout).toContain('1 stored');
    expect((await ingest(['-'], content)).stdout).toMatch(
      /^standard input: already loaded .*, 3 records, some of which may have been erased since; load it from a file to load these again\n$/,
    );
    expect((await ingest([file])).stdout).toBe('a.ndjson: 1 accepted, 0 rejected\n');
    expect((await ingest([file])).stdout).toContain('a.ndjson: already loaded');
    expect(await queryMessages()).toEqual(['one', 'two']);
    expect((await erase('beta')).stdout).toContain('1 stored');
  });

  test('content without timestamps is loaded again after an erasure up to a time', async () => {
    const file = write('a.ndjson', LINES);
    await ingest([file]);
    const erase = ['erase', '--project', 'alpha', '--before', new Date(Date.now() + 1).toISOString()];
    expect((await runDendro([...erase, '--yes', '--data', 'data'])).stdout).toContain('2 stored');
    expect((await ingest([file])).stdout).toBe('a.ndjson: 2 accepted, 0 rejected\n');
    expect(await queryMessages()).toEqual(['one', 'two']);
  });

  test('content is loaded completely and once after a killed load', async () => {
    const args = [BIN, 'ingest', '--data', 'data', '--source', 'edge', '-'];
    const killed = spawn(process.execPath, args, { cwd: directory.path });
    killed.stdin.on('error', () => {});
    for (let i = 0; i < 100; i++) killed.stdin.write(LINES.repeat(1000));
    await new Promise(resolve => killed.stdin.write('\n', resolve));
    killed.kill('SIGKILL');
    await once(killed, 'close');
    expect((await ingest(['-'], LINES)).stdout).toBe('standard input: 2 accepted, 0 rejected\n');
    expect(await queryMessages()).toEqual(['one', 'two']);
  });
});

describe('dendro ingest into a running server', () => {
  test('a repeated load stores nothing again, two equal batches of one file are stored, and --again stores all once more', async () => {
    const server = await startServerHere(['--data', 'data'], { env });
    const countAccepted = async () => {
      const headers = { 'X-API-KEY': PROCESS_API_KEY };
      const metrics = await (await fetch(`${server.internalUrl}/metrics`, { headers })).text();
      return Number(/^dendro_records_accepted_total\{kind="edge"\} (\d+)$/m.exec(metrics)?.[1]);
    };
    try {
      // 2 MiB of equal lines of 1 KiB: two equal batches
      const line = `${JSON.stringify({ project: 'alpha', message: 'x'.repeat(991) })}\n`;
      expect(line).toHaveLength(1024);
      const content = line.repeat(2048);
      const send = (args: readonly string[], input = '') =>
        runDendro(['ingest', '--url', server.internalUrl, '--source', 'edge', ...args], { env, input });
      const file = write('equal.ndjson', content);
      expect((await send([file])).stdout).toBe('equal.ndjson: 2,048 accepted, 0 rejected\n');
      expect(await countAccepted()).toBe(2048);
      // Standard input arrives in other pieces, which must not change the batches.
      expect((await send(['-'], content)).stdout).toBe('standard input: 2,048 accepted, 0 rejected\n');
      expect(await countAccepted()).toBe(2048);
      await send([file, '--again']);
      expect(await countAccepted()).toBe(4096);
    } finally {
      await server.stop();
    }
  });
});

describe('requests to a server', () => {
  const COMMANDS = [
    ['ingest', '-', '--source', 'edge'],
    ['query', 'logs.all', '--project', 'p', '--json'],
  ];
  const BODY = '{"result":[],"accepted":2,"rejected":0,"errors":[]}';

  /** Fails in each of these ways, one request at a time, then succeeds. Returns how many requests arrived. */
  const runAgainst = async (
    command: readonly string[],
    failures: readonly ((response: ServerResponse) => void)[],
  ) => {
    let requests = 0;
    const server = createServer((request: IncomingMessage, response) => {
      request.resume().on('end', () => {
        const fail = failures[requests++];
        response.setHeader('Content-Type', 'application/json');
        if (fail === undefined) response.end(BODY);
        else fail(response);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const outcome = await runDendro([...command, '--url', url], { env, input: LINES });
    server.closeAllConnections();
    server.close();
    return { ...outcome, requests };
  };
  const breakOff = (response: ServerResponse) => {
    response.writeHead(200, { 'Content-Length': '1000' });
    response.write('{"result":', () => response.destroy());
  };
  const reset = (response: ServerResponse) => response.destroy();
  const respond = (status: number) => (response: ServerResponse) => {
    response.writeHead(status, { 'Retry-After': '1' }).end('{"error":{"message":"later"}}');
  };

  test.each(COMMANDS)(
    '%s %s retries a response that breaks off, a lost connection, and 429 and 503',
    async (...command) => {
      const outcome = await runAgainst(command, [breakOff, reset, respond(503), respond(429)]);
      expect(outcome).toMatchObject({ code: 0, requests: 5 });
    },
  );

  test('query stops after 5 attempts', async () => {
    const outcome = await runAgainst(
      COMMANDS[1] ?? [],
      Array.from({ length: 9 }, () => breakOff),
    );
    expect(outcome).toMatchObject({ code: 1, requests: 5 });
    expect(outcome.stderr).toMatch(/^dendro: the response of \S+ broke off: .*\n$/);
  });
});
