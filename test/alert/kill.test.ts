// Kills the built program while it evaluates and delivers. Whatever the moment, each change of the problem is reported under one id, at
// least once, and in order.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CustomEndpoints, testEndpoint, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  PROCESS_API_KEY,
  runDendro,
  type ServerProcess,
  startServer,
} from '../support/process.ts';
import { TestReceiver } from '../support/receiver.ts';

/** A project has a problem while its newest record says so. */
const endpoint = testEndpoint('test.problems', {
  columns: { project: 'text' },
  sql: "select project from edge_logs group by project having max_by(event_message, timestamp) = 'bad' order by 1",
  more: { alert: { every: '10s', key: ['project'], summary: '{project}', resolve_after: 1 } },
});

const directory = createTempDirectory();
const data = join(directory.path, 'data');
const receiversFile = join(directory.path, 'receivers.yaml');
const options = { env: { DENDRO_API_KEY: PROCESS_API_KEY } };
let receiver: TestReceiver;
let endpoints: CustomEndpoints;
beforeAll(async () => {
  receiver = await TestReceiver.start();
  endpoints = writeEndpointFolders({ problems: endpoint });
  writeFileSync(receiversFile, `receivers:\n  ops: { type: webhook, url: '${receiver.url}' }\n`);
  chmodSync(receiversFile, 0o600);
});
afterAll(async () => {
  await receiver.stop();
  endpoints.remove();
  directory.remove();
});

const start = () =>
  startServer(
    ['--data', data, '--endpoints', endpoints.folder, '--alerts', '--receivers', receiversFile],
    options,
  );

async function ingest(message: string): Promise<void> {
  const input = JSON.stringify({ project: 'acme', message });
  const { code, stderr } = await runDendro(['ingest', '--source', 'edge', '--data', data, '-'], { input });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

async function readWaiting({ internalUrl }: ServerProcess): Promise<string> {
  const response = await fetch(`${internalUrl}/metrics`, { headers: { 'X-API-KEY': PROCESS_API_KEY } });
  return response.text();
}

/** Kills servers until one has delivered: some at random moments, and some while the receiver has the request. */
async function killUntilDelivered(state: string): Promise<void> {
  const isReceived = () => receiver.instances().some(each => each.startsWith(state));
  for (let run = 0; run < 6; run++) {
    const server = await start();
    await sleep(run * 15);
    server.signal('SIGKILL');
    await server.ended;
  }
  const seen = receiver.requests.length;
  receiver.behaviour = 'hang';
  const hanging = await start();
  if (!isReceived()) await expect.poll(() => receiver.requests.length).toBeGreaterThan(seen);
  hanging.signal('SIGKILL');
  await hanging.ended;
  receiver.behaviour = 200;
  const server = await start();
  await expect.poll(isReceived).toBe(true);
  await expect.poll(() => readWaiting(server)).toContain('dendro_notifications_waiting 0\n');
  await server.stop();
}

test('no notification is lost, and one that is repeated has the same id and body', async () => {
  await ingest('bad');
  await killUntilDelivered('firing');
  await ingest('good');
  await sleep(10_000); // after a start, the next evaluation is an interval after the last one
  await killUntilDelivered('resolved');
  const states = receiver.instances();
  expect(states).toEqual([...states].sort()); // firing before resolved
  for (const state of ['firing', 'resolved']) {
    const of = receiver.requests.filter(({ body }) => body.state === state);
    expect(new Set(of.map(({ body }) => body.id)).size).toBe(1);
    expect(new Set(of.map(({ text }) => text)).size).toBe(1);
  }
  const requests = receiver.requests.length;
  const server = await start();
  await sleep(500);
  await server.stop();
  expect(receiver.requests).toHaveLength(requests);
});
