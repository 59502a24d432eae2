// The whole application in this process: real store, real HTTP, a clock that tests set.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startApp } from '../../src/app.ts';
import type { ServeConfig } from '../../src/config.ts';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { type LogLines, toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { parseTimestamp } from '../../src/domain/timestamp.ts';
import type { BodyParser } from '../../src/intake/body-parser-pool.ts';
import { parseBody } from '../../src/intake/parse-body.ts';
import type { Event } from '../../src/observe/event.ts';
import { storeNameOf } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { systemTimer, type Timer } from '../../src/system/timer.ts';
import { storeOverrides } from './clickhouse.ts';
import { API_KEY, testConfig, testStoreOptions } from './config.ts';
import { ManualTimer } from './manual-timer.ts';

export { API_KEY, testConfig, testStoreOptions };
export const NOW = '2026-11-14T12:34:56.789012Z';

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly rows: Record<string, unknown>[];
  readonly error: { code: string; message: string; param?: string };
}

export interface TestApp {
  readonly url: string;
  readonly internalUrl: string;
  readonly dataDirectory: string;
  readonly store: Store;
  readonly events: Event[];
  setNow(timestamp: string): void;
  /** The time of the clock, in Unix microseconds. */
  now(): bigint;
  /** Sets the wall clock without time passing. */
  stepClock(ms: number): void;
  /** Advances the clock and, if the timer is manual, the timer. */
  pass(ms: number): Promise<void>;
  append(kind: LogKind, records: readonly LogRecord[]): Promise<void>;
  /** Sends a GET with the suite's token, unless `init` has other headers. */
  get(path: string, init?: RequestInit): Promise<TestResponse>;
  query(name: string, parameters: Record<string, string>): Promise<TestResponse>;
  reloadEndpoints(): Promise<void>;
  close(): Promise<void>;
}

export async function startTestApp(
  overrides: Partial<ServeConfig> = {},
  timer: Timer = shortWaitTimer,
  clockStepMs = 0,
): Promise<TestApp> {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'dendro-test-'));
  const defaults = testConfig(dataDirectory);
  const store = { ...defaults.store, ...(await storeOverrides()) };
  const config: ServeConfig = { ...defaults, store, storeName: storeNameOf(store), ...overrides };
  let now = micros(NOW);
  let clockStep = BigInt(clockStepMs) * 1000n;
  const events: Event[] = [];
  const app = await startApp(config, event => events.push(event), {
    clock: () => now + clockStep,
    timer,
    bodyParser: inlineBodyParser,
    idempotencyTimer: { now: () => Number(now - micros(NOW)) / 1000 },
  }).catch(error => {
    rmSync(dataDirectory, { recursive: true, force: true });
    throw error;
  });
  const get = (path: string, init: RequestInit = {}) =>
    fetchResponse(`${app.publicUrl}${path}`, { headers: { 'X-API-KEY': API_KEY }, ...init });
  return {
    url: app.publicUrl,
    internalUrl: app.internalUrl,
    dataDirectory,
    store: app.store,
    events,
    get,
    setNow(timestamp) {
      now = micros(timestamp);
    },
    now: () => now + clockStep,
    stepClock(ms) {
      clockStep += BigInt(ms) * 1000n;
    },
    async pass(ms) {
      now += BigInt(ms) * 1000n;
      if (timer instanceof ManualTimer) await timer.advance(ms);
    },
    async append(kind, records) {
      await app.store.append(batchesOf(kind, records));
    },
    query: (name, parameters) => get(`/api/endpoints/query/${name}?${new URLSearchParams(parameters)}`),
    reloadEndpoints: app.reloadEndpoints,
    async close() {
      await app.close();
      rmSync(dataDirectory, { recursive: true, force: true });
    },
  };
}

/** Parses bodies without a worker thread: threads run the built program, which only the acceptance tests use. */
const inlineBodyParser: BodyParser = {
  async parse(body, { isPaused } = {}) {
    while (isPaused?.()) await sleep(1);
    return parseBody(body);
  },
  close: async () => {},
};

/** A wait of a second takes a millisecond, so that no test waits for the auth throttle. Time passes as usual. */
const shortWaitTimer: Timer = {
  now: systemTimer.now,
  after: (ms, callback) => systemTimer.after(ms / 1000, callback),
};

/** Time passes a thousand times as fast too, so that the auth throttle forgets wrong tokens at once. */
export const fastTimer: Timer = { ...shortWaitTimer, now: () => performance.now() * 1000 };

export async function fetchResponse(url: string, init: RequestInit): Promise<TestResponse> {
  const response = await fetch(url, init);
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
  const body = isJson ? JSON.parse(text) : {};
  return { status: response.status, headers: response.headers, text, rows: body.result, error: body.error };
}

/** Follows the cursors of an endpoint to its last page. */
export async function queryPages(
  app: TestApp,
  name: string,
  parameters: Record<string, string>,
): Promise<TestResponse[]> {
  const pages: TestResponse[] = [];
  for (let cursor: string | null = ''; cursor !== null && pages.length < 100; ) {
    const page = await app.query(name, { ...parameters, cursor });
    if (page.status !== 200) throw new Error(`a page has the status ${page.status}: ${page.text}`);
    pages.push(page);
    cursor = page.headers.get('dendro-next-cursor');
  }
  return pages;
}

export function micros(timestamp: string): bigint {
  const value = parseTimestamp(timestamp);
  if (value === undefined) throw new Error(`${timestamp} is not a timestamp`);
  return value;
}

async function* batchesOf(kind: LogKind, records: readonly LogRecord[]): AsyncIterable<LogLines> {
  if (records.length > 0) yield toLogLines(kind, records);
}
