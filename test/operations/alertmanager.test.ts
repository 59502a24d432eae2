// A real Alertmanager, from its Debian package, gets the notifications of a real server.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram, unpackPackage } from '../../scripts/debian.mjs';
import { type AlertApp, alertEndpoint, startAlertApp } from '../support/alerts.ts';
import { createTempDirectory, findFreePort } from '../support/process.ts';

const UNPACKED = join(import.meta.dirname, '../../node_modules/.cache/dendro/alertmanager');
const NAME = 'prometheus-alertmanager';
const TEMPLATES = '/usr/share/prometheus/alertmanager';

const directory = createTempDirectory();
let program: string;
let port: number;
let running: ChildProcess;
let app: AlertApp;
beforeAll(async () => {
  program = ensureProgram();
  port = await findFreePort();
  writeFileSync(
    join(directory.path, 'alertmanager.yml'),
    'route: { receiver: none }\nreceivers: [{ name: none }]\n',
  );
  running = await start();
  app = await startAlertApp(
    { problems: alertEndpoint({ severity: 'critical', no_data: { alert: '30m' } }) },
    { am: { type: 'alertmanager', url: `http://127.0.0.1:${port}` } },
  );
  // In the past, because Alertmanager has the real time, and the clock of the app will move ahead.
  app.setNow(new Date(Date.now() - 3_600_000).toISOString());
});
afterAll(async () => {
  await app?.close();
  await stop();
  directory.remove();
});

function ensureProgram(): string {
  const installed = findProgram(NAME);
  if (installed !== undefined) return installed;
  const unpacked = join(UNPACKED, 'usr/bin', NAME);
  const problem = existsSync(unpacked) ? undefined : unpackPackage(NAME, UNPACKED);
  if (problem !== undefined)
    throw new Error(`${NAME} is missing; on Debian: sudo apt-get install ${NAME} (${problem})`);
  // The program of the package reads its template from here, wherever it is unpacked.
  if (!existsSync(TEMPLATES)) cpSync(join(UNPACKED, TEMPLATES), TEMPLATES, { recursive: true });
  return unpacked;
}

async function start(): Promise<ChildProcess> {
  const child = spawn(
    program,
    [
      `--config.file=${join(directory.path, 'alertmanager.yml')}`,
      `--storage.path=${join(directory.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--cluster.listen-address=',
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`${NAME} exited with ${child.exitCode}`);
    await sleep(50);
  }
  return child;
}

async function stop(): Promise<void> {
  running?.kill('SIGTERM');
  if (running?.exitCode === null) await once(running, 'exit');
}

interface AmAlert {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
  readonly generatorURL: string;
}

async function activeAlerts(): Promise<AmAlert[]> {
  return (await fetch(`http://127.0.0.1:${port}/api/v2/alerts?active=true`)).json() as Promise<AmAlert[]>;
}

const projects = async () =>
  (await activeAlerts()).map(({ labels }) => labels['project'] ?? labels['cause']).sort();

test('Alertmanager has the firing instances, also after its restart, and no longer those that resolved', async () => {
  await app.addProblem('acme', 'beta');
  await app.evaluate();
  await expect.poll(projects).toEqual(['acme', 'beta']);
  expect((await activeAlerts())[0]).toMatchObject({
    labels: { alertname: 'test.problems', severity: 'critical' },
    annotations: { summary: expect.stringMatching(/^1 problems in (acme|beta)$/) },
    generatorURL: expect.stringContaining('https://logs.example.com/?view=logs&project='),
  });
  await stop();
  running = await start();
  expect(await projects()).toEqual([]);
  for (const _ of [1, 2, 3, 4, 5]) await app.evaluate();
  await expect.poll(projects).toEqual(['acme', 'beta']);
  await app.store.eraseProject({ project: 'beta' });
  await app.evaluate();
  await app.evaluate();
  await expect.poll(projects).toEqual(['acme']);
  await app.store.eraseProject({ project: 'acme' });
  await app.evaluate();
  await expect.poll(projects).toEqual(['acme', 'no_data']);
});

test('an instance that resolves is no longer active, even if the clock of Dendro is some seconds ahead', async () => {
  app.setNow(new Date(Date.now() - 60_000).toISOString());
  await app.addProblem('delta', 'gamma'); // without a record, no_data would keep it firing
  await app.evaluate();
  await expect.poll(projects).toContain('gamma');
  await app.store.eraseProject({ project: 'gamma' });
  for (const _ of [1, 2]) {
    app.setNow(new Date(Date.now() + 5000 - 60_000).toISOString());
    await app.evaluate();
  }
  await expect.poll(projects).not.toContain('gamma');
});
