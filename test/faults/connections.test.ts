// Clients that disappear in the middle of a request, and clients that connect and do nothing.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { sized } from '../support/fault-report.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess } from '../support/process.ts';
import { rawRequest } from '../support/raw-http.ts';
import { SEED } from '../support/seed.ts';
import { auditAndReport } from './audit.ts';
import { Ledger, type SentBatch } from './load.ts';
import { kill, queryStatus, readUse, serve } from './server.ts';

const MIB = 1024 * 1024;
const VANISHING_CLIENTS = sized(200, 4_000);
const CONCURRENT_CLIENTS = 20;
const IDLE_CONNECTIONS = 2_000;
/** Node opens descriptors of its own from time to time. */
const DESCRIPTOR_TOLERANCE = 20;

const random = new Random(SEED);
const SHAPE = { kinds: ['edge'], records: [50, 500] } as const;

let directory: ReturnType<typeof createTempDirectory>;
let server: ServerProcess;
let ledger: Ledger;
beforeEach(async () => {
  directory = createTempDirectory();
  ledger = new Ledger();
  server = await serve(directory.path);
});
afterEach(async () => {
  await kill(server);
  directory.remove();
});

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** The bytes of a request with the batch. */
function encode({ kind, body: createBody }: SentBatch): Buffer {
  const body = createBody();
  const head = rawRequest(`POST /api/logs?source_name=${kind}`, {
    'X-API-KEY': PROCESS_API_KEY,
    'Content-Type': 'application/x-ndjson',
    'Content-Encoding': 'gzip',
    'Content-Length': String(body.length),
  });
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

/** Sends a random part of a request, or all of it, and closes or resets the connection without reading the response. */
async function vanish(): Promise<void> {
  const isQuery = random.chance(0.3);
  const query = rawRequest('GET /api/endpoints/query/logs.all?project=p0', { 'X-API-KEY': PROCESS_API_KEY });
  const bytes = isQuery ? Buffer.from(query) : encode(ledger.createBatch(SHAPE));
  const socket = await open(isQuery ? server.url : server.internalUrl);
  const isComplete = random.chance(0.5);
  socket.write(bytes.subarray(0, isComplete ? bytes.length : Math.floor(random.next() * bytes.length)));
  await sleep(random.next() * 20);
  if (random.chance(0.5)) socket.resetAndDestroy();
  else socket.destroy();
}

test('clients that vanish during a request leave no connection behind and no partly stored batch', async () => {
  await ledger.send(server.internalUrl, ledger.createBatch(SHAPE));
  await queryStatus(server);
  const before = readUse(server).descriptors;
  let left = VANISHING_CLIENTS;
  const runClients = async () => {
    while (left-- > 0) await vanish();
  };
  await Promise.all(Array.from({ length: CONCURRENT_CLIENTS }, runClients));
  await expect.poll(() => readUse(server).descriptors).toBeLessThan(before + DESCRIPTOR_TOLERANCE);
  expect(await ledger.send(server.internalUrl, ledger.createBatch(SHAPE))).toBe(200);
  const status = await queryStatus(server);
  const { code } = await server.stop();
  const outcome = `no connection stays open; batches are stored whole or not at all; queries get ${status}`;
  const row = { fault: 'clients that vanish', runs: VANISHING_CLIENTS, outcome };
  await auditAndReport(row, directory.path, ledger);
  expect([status, code]).toEqual([200, 0]);
});

test('2,000 idle connections take little memory, and other clients are served', async () => {
  await queryStatus(server);
  const before = readUse(server);
  const sockets: Socket[] = [];
  try {
    while (sockets.length < IDLE_CONNECTIONS) {
      const socket = await open(sockets.length % 2 === 0 ? server.url : server.internalUrl);
      sockets.push(socket);
      socket.write(rawRequest('GET /health')); // after a response, the connection may stay idle for 65 s
    }
    await expect.poll(() => readUse(server).descriptors).toBeGreaterThan(IDLE_CONNECTIONS);
    const statuses = new Set<number | undefined>();
    for (let request = 0; request < 20; request++) {
      statuses.add(await ledger.send(server.internalUrl, ledger.createBatch(SHAPE)));
      statuses.add(await queryStatus(server));
    }
    const growth = readUse(server).rssBytes - before.rssBytes;
    for (const socket of sockets) socket.destroy();
    await expect
      .poll(() => readUse(server).descriptors)
      .toBeLessThan(before.descriptors + DESCRIPTOR_TOLERANCE);
    await kill(server);
    const outcome = `other clients get ${[...statuses].join(' and ')}; memory grows by less than ${Math.ceil(growth / MIB / 50) * 50} MiB`;
    await auditAndReport({ fault: '2,000 idle connections', runs: 1, outcome }, directory.path, ledger);
    expect([...statuses]).toEqual([200]);
    expect(growth).toBeLessThan(300 * MIB);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
