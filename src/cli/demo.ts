// dendro demo: serves a temporary store with a synthetic platform. Its history is written to the store before the server starts.
// Its live traffic is sent to the internal listener, like the logs of a real platform.
import { type App, startApp } from '../app.ts';
import { type Invocation, readServeConfig, type ServeConfig } from '../config.ts';
import { DEMO_PROJECTS } from '../demo/projects.ts';
import { Random } from '../demo/random.ts';
import { createTraffic, fillHistory } from '../demo/traffic.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { logTo } from '../observe/log.ts';
import { openStore } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import { toReachable } from '../system/reachable-url.ts';
import { every, systemTimer } from '../system/timer.ts';
import type { Io } from './io.ts';
import { closeWithinLimit, waitForStopSignal } from './serve.ts';
import { withTemporaryDirectory } from './temporary-directory.ts';

const TRAFFIC_INTERVAL_MS = 1000;
const nowMs = () => Number(systemClock() / 1000n);

export async function demo(invocation: Invocation, io: Io): Promise<void> {
  const stopSignal = waitForStopSignal(io);
  await withTemporaryDirectory('dendro-demo-', async dataDirectory => {
    const config = readServeConfig(withTemporaryStore(invocation, dataDirectory));
    const random = new Random(Number(systemClock() % 2n ** 32n));
    const historyEndMs = await createHistory(config, random, io);
    await serveDemo(config, historyEndMs, random, stopSignal, io);
  });
}

/** What the demo does not take from the operator's environment: it creates its own tokens, and sends its traffic without TLS. */
const IGNORED_FLAGS = ['tokens', 'internal-tls-cert', 'internal-tls-key'];

/** The same invocation, but with a DuckDB store and a tokens file in this directory, and without API keys. */
function withTemporaryStore(invocation: Invocation, dataDirectory: string): Invocation {
  return {
    ...invocation,
    environmentKeys: [],
    text(name) {
      if (name === 'data') return dataDirectory;
      if (name === 'store') return 'duckdb';
      return IGNORED_FLAGS.includes(name) ? undefined : invocation.text(name);
    },
  };
}

/** Returns the end of the history in Unix milliseconds. */
async function createHistory(config: ServeConfig, random: Random, { stderr }: Io): Promise<number> {
  stderr.write('creating seven days of history\n');
  const store = await openStore(config.store);
  try {
    const endMs = nowMs();
    const count = await fillHistory(store, { endMs, scale: 1, random });
    stderr.write(`created ${count} records\n`);
    return endMs;
  } finally {
    await store.close();
  }
}

async function serveDemo(
  config: ServeConfig,
  historyEndMs: number,
  random: Random,
  stopSignal: Promise<string>,
  io: Io,
): Promise<void> {
  const observe = logTo(io.stdout, io.stderr);
  let token = '';
  const app = await startApp(config, observe, {
    showFirstToken({ secret }) {
      token = secret;
    },
  });
  let sentUpToMs = historyEndMs;
  const traffic = every(systemTimer, TRAFFIC_INTERVAL_MS, async () => {
    const period = { fromMs: sentUpToMs, toMs: nowMs(), demoStartMs: historyEndMs, scale: 1 };
    sentUpToMs = period.toMs;
    const records = createTraffic(period, random);
    for (const kind of LOG_KINDS)
      if (records[kind].length > 0) await post(app, token, kind, records[kind]).catch(() => {}); // records that cannot be sent are dropped
  });
  observe({ type: 'listening', listener: 'public', url: app.publicUrl });
  observe({ type: 'listening', listener: 'internal', url: app.internalUrl });
  io.stdout.write(describeDemo(toReachable(app.publicUrl), token));
  try {
    observe({ type: 'stopping', signal: await Promise.race([stopSignal, app.storeFailed]) });
  } finally {
    await traffic.stop();
    await closeWithinLimit(app, observe, io);
  }
  observe({ type: 'stopped' });
}

async function post(app: App, token: string, kind: string, records: readonly unknown[]): Promise<void> {
  const response = await fetch(`${toReachable(app.internalUrl)}/api/logs?source_name=${kind}`, {
    method: 'POST',
    headers: { 'X-API-KEY': token, 'Content-Type': 'application/json' },
    body: JSON.stringify(records),
  });
  await response.text();
}

function describeDemo(url: string, token: string): string {
  const curl = (query: string) => `curl -H 'X-API-KEY: ${token}' '${url}/api/endpoints/query/${query}'`;
  const width = Math.max(...DEMO_PROJECTS.map(({ ref }) => ref.length));
  return [
    '',
    'The console, with a token that is valid until the demo stops:',
    '',
    `  ${url}/?project=stormy-harbor#token=${token}`,
    '',
    'Projects:',
    '',
    ...DEMO_PROJECTS.map(({ ref, description }) => `  ${ref.padEnd(width)}  ${description}`),
    '',
    'The API:',
    '',
    `  ${curl('functions.invocation-stats?project=slow-river&interval=7day')}`,
    `  ${curl('usage.api-counts?project=busy-market&interval=minutely')}`,
    `  ${curl('logs.all?project=quiet-garden&project_tier=PRO')}`,
    '',
    '',
  ].join('\n');
}
