// The example configuration of nginx, with Debian's nginx in front of the real program.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { encodeOtlp, otlpRequest } from '../support/otlp.ts';
import {
  createTempDirectory,
  findFreePort,
  PROCESS_API_KEY,
  type ServerProcess,
  startServer,
} from '../support/process.ts';
import { createSelfSigned } from '../support/self-signed.ts';

const EXAMPLES = join(import.meta.dirname, '../../deploy/nginx');
const CALL = '/api/endpoints/query/logs.all?project=a';
const certificate = createSelfSigned();

let directory: ReturnType<typeof createTempDirectory>;
let server: ServerProcess;
let relay: Relay;
let nginx: ChildProcess;
let port: number;
let drainPort: number;

beforeAll(async () => {
  expect(ensurePrograms({ nginx: 'nginx-light' }), 'missing programs that this test needs').toEqual([]);
  directory = createTempDirectory();
  server = await startServer(['--data', join(directory.path, 'data'), '--trusted-proxy', '127.0.0.1/32'], {
    env: { DENDRO_API_KEY: PROCESS_API_KEY },
  });
  relay = await startRelay(Number(new URL(server.url).port));
  port = await findFreePort();
  drainPort = await findFreePort();
  nginx = spawn('nginx', ['-p', directory.path, '-c', writeConfiguration(), '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await vi.waitFor(async () => expect(await get('/health')).toMatchObject({ status: 200 }), 60_000);
});

afterAll(async () => {
  nginx?.kill('SIGTERM');
  if (nginx?.exitCode === null) await once(nginx, 'exit');
  await server?.stop();
  relay?.close();
  directory?.remove();
});

/** The examples with the ports and paths of this test. */
function writeConfiguration(): string {
  const files = { cert: join(directory.path, 'cert.pem'), key: join(directory.path, 'key.pem') };
  writeFileSync(files.cert, certificate.cert);
  writeFileSync(files.key, certificate.key);
  const readExample = (name: string, listenPort: number) =>
    readFileSync(join(EXAMPLES, name), 'utf8')
      .replace('127.0.0.1:4000', `127.0.0.1:${relay.port}`)
      .replace('127.0.0.1:4001', new URL(server.internalUrl).host)
      .replace('listen 443', `listen 127.0.0.1:${listenPort}`)
      .replace('/etc/ssl/dendro/cert.pem', files.cert)
      .replace('/etc/ssl/dendro/key.pem', files.key);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${join(directory.path, name)};`,
  );
  const file = join(directory.path, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${join(directory.path, 'nginx.pid')}; worker_processes 1; user root; events {}
     http { access_log off; ${temporary.join(' ')}
       ${readExample('dendro.conf', port)} ${readExample('drain.conf', drainPort)} }`,
  );
  return file;
}

interface Relay {
  readonly port: number;
  readonly connections: () => number;
  close(): void;
}

/** Passes bytes on to the program, and counts the connections that nginx opens. */
async function startRelay(targetPort: number): Promise<Relay> {
  let connections = 0;
  const relay: Server = createServer(socket => {
    connections++;
    const target = connect(targetPort, '127.0.0.1');
    for (const each of [socket, target]) each.on('error', () => {});
    socket.pipe(target).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  return {
    port: (relay.address() as AddressInfo).port,
    connections: () => connections,
    close: () => relay.close(),
  };
}

interface GetOptions {
  readonly headers?: Record<string, string>;
  /** The client's own address. */
  readonly from?: string;
  readonly port?: number;
  /** Sent with POST. */
  readonly body?: Buffer;
}

/** A request over TLS, each on a connection of its own. */
async function get(path: string, { headers = {}, from = '127.0.0.1', body, ...options }: GetOptions = {}) {
  const agent = new Agent({ keepAlive: false });
  const sent = request({
    host: '127.0.0.1',
    port,
    ...options,
    method: body === undefined ? 'GET' : 'POST',
    path,
    headers,
    agent,
    localAddress: from,
    ca: certificate.cert,
  }).end(body);
  const [response] = await once(sent, 'response');
  const chunks: Buffer[] = await response.toArray();
  return {
    status: response.statusCode as number,
    headers: response.headers,
    text: Buffer.concat(chunks).toString(),
  };
}

test('a client reads an endpoint over TLS', async () => {
  const response = await get(CALL, { headers: { 'X-API-KEY': PROCESS_API_KEY } });
  expect(response).toMatchObject({ status: 200, text: '{"result":[]}' });
  expect(response.headers['strict-transport-security']).toBe('max-age=31536000');
  expect((await get(CALL)).status).toBe(401);
});

test('requests of many client connections share kept-alive connections to the program', async () => {
  const before = relay.connections();
  for (let i = 0; i < 50; i++) await get(CALL, { headers: { 'X-API-KEY': PROCESS_API_KEY } });
  expect(relay.connections() - before).toBeLessThan(5);
});

test('a URL of 8,000 characters passes', async () => {
  const path = `${CALL}&unused=${'x'.repeat(8000 - CALL.length - 8)}`;
  expect((await get(path, { headers: { 'X-API-KEY': PROCESS_API_KEY } })).status).toBe(200);
});

test('wrong tokens of one client delay its responses only, even if it invents addresses in X-Forwarded-For', async () => {
  const finished: string[] = [];
  const guess = async (name: string, from: string, forwardedFor: string) => {
    const headers = { 'X-API-KEY': `a-wrong-token-of-${name}`, 'X-Forwarded-For': forwardedFor };
    const { status } = await get(CALL, { headers, from });
    finished.push(name);
    return status;
  };
  const guesses = Array.from({ length: 55 }, (_, n) => guess('guesser', '127.0.0.2', `192.0.2.${n}`));
  await expect.poll(() => finished.length).toBeGreaterThanOrEqual(10); // these are not delayed
  const other = Array.from({ length: 5 }, () => guess('other', '127.0.0.3', ''));
  expect(await Promise.all([...guesses, ...other])).toEqual(Array(60).fill(401));
  expect(finished.at(-1)).toBe('guesser');
  expect(
    finished.filter((name, n) => name === 'guesser' && n > finished.lastIndexOf('other')).length,
  ).toBeGreaterThan(5);
});

test('a log drain reaches the intake over TLS, and nothing else of the internal listener', async () => {
  const record = { eventName: 'from the drain' };
  const body = gzipSync(
    encodeOtlp(otlpRequest({ 'service.name': 'postgres.logs', 'service.namespace': 'drained' }, [record])),
  );
  const headers = {
    'X-API-KEY': PROCESS_API_KEY,
    'Content-Type': 'application/x-protobuf',
    'Content-Encoding': 'gzip',
  };
  const drain = { port: drainPort, headers };
  expect(await get('/v1/logs', { ...drain, body })).toMatchObject({ status: 200, text: '' });
  const query = '/api/endpoints/query/logs.search?project=drained&kind=postgres';
  await expect.poll(async () => (await get(query, { headers })).text).toContain('from the drain');
  for (const path of ['/metrics', '/health', '/api/admin/backup', '/v1/logs/'])
    expect((await get(path, drain)).status).toBe(404);
});
