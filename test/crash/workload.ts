// The workload of the crash simulator, in a process of its own under the shim: a server with all of its components, a sender and an
// operator. Time is skipped, so that hourly jobs run within seconds. The seed determines all steps.
import { accessSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type App, startApp } from '../../src/app.ts';
import { Random } from '../../src/demo/random.ts';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { formatTimestamp } from '../../src/domain/timestamp.ts';
import { parseBody } from '../../src/intake/parse-body.ts';
import type { Event } from '../../src/observe/event.ts';
import type { Timer } from '../../src/system/timer.ts';
import { hashSecret } from '../../src/token/token.ts';
import { changeTokenFile, readTokenFile } from '../../src/token/token-file.ts';
import { API_KEY, testConfig } from '../support/config.ts';
import {
  type BatchEntry,
  type BatchState,
  bodyOf,
  Ledger,
  type LedgerContent,
  type Marker,
} from './ledger.ts';

export interface WorkloadOptions {
  readonly dataDirectory: string;
  readonly seed: number;
  readonly steps: number;
  readonly ledger: LedgerContent;
  /** The process is killed before its file operation of this number; 0: it stops cleanly. */
  readonly killBefore: number;
}

export const RETENTION_DAYS = 1;
const HOUR_MS = 3_600_000;
const DAY_MICROS = 86_400_000_000;
/** A batch of this age expires with the next skip of an hour. */
const OLD_MICROS = DAY_MICROS - 1_800_000_000;
const RECENT_MICROS = 300_000_000;
const WAIT_MS = 5_000;

const KINDS: readonly [LogKind, ...LogKind[]] = ['edge', 'edge', 'postgres', 'auth', ...LOG_KINDS];
type Projects = readonly [string, ...string[]];
/** No other text contains it. */
export const ERASED_PROJECT = 'qkzvxwyjfhbg';
const KEPT_PROJECTS: Projects = ['alpha', 'beta'];
const PROJECTS: Projects = [ERASED_PROJECT, ...KEPT_PROJECTS];

export const secretOf = (token: string) => `the-secret-of-${token}`;

export async function runWorkload(options: WorkloadOptions): Promise<void> {
  if (options.killBefore > 0) accessSync(`/shim-marker/kill ${options.killBefore}`);
  const workload = await Workload.start(options);
  for (let step = 0; step < options.steps; step++) await workload.runStep();
  await workload.stop();
}

class Workload {
  readonly #options: WorkloadOptions;
  readonly #random: Random;
  readonly #ledger: Ledger;
  readonly #time: SkippingTime;
  readonly #events: Event['type'][] = [];
  #app: App | undefined;
  #nextBatch: number;
  /** Batches that can be sent again: the server recognizes a repeat for ten minutes. */
  #recent: BatchEntry[];
  /** An erasure that has not ended may also erase records that arrive meanwhile. */
  #mayEraseNewRecords: boolean;

  private constructor(options: WorkloadOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#ledger = new Ledger(options.ledger);
    this.#time = new SkippingTime(options.ledger.clock);
    const { batches } = options.ledger;
    this.#nextBatch = 1 + Math.max(0, ...batches.map(({ number }) => number));
    this.#recent = batches.filter(
      ({ state, timestamp }) => state === 'sent' && timestamp > options.ledger.clock - RECENT_MICROS,
    );
    this.#mayEraseNewRecords = existsSync(join(options.dataDirectory, 'erase.json'));
  }

  static async start(options: WorkloadOptions): Promise<Workload> {
    const workload = new Workload(options);
    const { dataDirectory } = options;
    const tokensFile = testConfig(dataDirectory).tokensFile;
    if (!readTokenFile(tokensFile).some(({ name }) => name === 'operator'))
      await workload.#createToken('operator', ['admin']);
    const config = testConfig(dataDirectory);
    workload.#app = await startApp(
      {
        ...config,
        retentionDays: RETENTION_DAYS,
        store: { ...config.store, threads: 1, queryConcurrency: 1 },
      },
      event => workload.#events.push(event.type),
      {
        clock: () => BigInt(workload.#time.micros),
        timer: workload.#time.timer,
        bodyParser: { parse: async body => parseBody(body), close: async () => {} },
      },
    );
    return workload;
  }

  async runStep(): Promise<void> {
    this.#mark({ clock: this.#time.micros });
    const choice = this.#random.next();
    if (choice < 0.5) await this.#send();
    else if (choice < 0.6) await this.#changeTokens();
    else if (choice < 0.65) await this.#repeat();
    else if (choice < 0.8) await Promise.all([this.#erase(), this.#send(KEPT_PROJECTS)]);
    else if (choice < 0.9) await Promise.all([this.#skipHour(), this.#send()]);
    else await Promise.all([this.#compact(), this.#send()]);
  }

  async stop(): Promise<void> {
    await this.#app?.close();
  }

  get #server(): App {
    if (this.#app === undefined) throw new Error('the server has not started');
    return this.#app;
  }

  #mark(marker: Marker): void {
    this.#ledger.apply(marker);
    accessSync(`/shim-marker/${JSON.stringify(marker)}`);
  }

  #markBatches(batches: readonly BatchEntry[], state: BatchState): void {
    for (const batch of batches) this.#mark({ batch: { ...batch, state } });
  }

  /** Sends one to three batches at the same time, then lets the server apply them. */
  async #send(projects: Projects = this.#mayEraseNewRecords ? KEPT_PROJECTS : PROJECTS): Promise<void> {
    const count = 1 + Math.floor(this.#random.next() * 3);
    const batches = Array.from({ length: count }, () => this.#createBatch(projects));
    await Promise.all(batches.map(batch => this.#store(batch)));
    this.#recent.push(...batches);
    this.#time.skip(300);
    await sleep(this.#random.next() * 20);
  }

  #createBatch(projects: Projects): BatchEntry {
    const isOld = this.#random.chance(0.1);
    return {
      number: this.#nextBatch++,
      kind: this.#random.pick(KINDS),
      project: this.#random.pick(projects),
      records: this.#random.pick([1, 2, 5, 20, 60]),
      units: this.#random.pick([1, 4, 10, 40]),
      timestamp: this.#time.micros - (isOld ? OLD_MICROS : 0),
      isFile: this.#random.chance(0.2),
      state: 'sent',
    };
  }

  async #store(batch: BatchEntry): Promise<void> {
    if (this.#stateOf(batch.number) === undefined) this.#mark({ batch });
    await (batch.isFile ? this.#load(batch) : this.#post(batch));
    this.#mark({ batch: { ...batch, state: 'stored' } });
  }

  async #post(batch: BatchEntry): Promise<void> {
    const response = await fetch(`${this.#server.internalUrl}/api/logs?source_name=${batch.kind}`, {
      method: 'POST',
      headers: { 'X-API-KEY': API_KEY, 'Content-Type': 'application/x-ndjson' },
      body: bodyOf(batch),
    });
    const text = await response.text();
    if (response.status === 429) {
      await sleep(20); // time was skipped while the store applied a batch
      return this.#post(batch);
    }
    if (response.status !== 200)
      throw new Error(`batch ${batch.number} got the status ${response.status}: ${text}`);
  }

  /** Does what `dendro ingest` does with a file. */
  async #load(batch: BatchEntry): Promise<void> {
    const nowMicros = this.#time.micros;
    const data = Buffer.from(bodyOf(batch));
    const identity = { source: 'crash', digest: `batch ${batch.number}`, fileBytes: data.length };
    const context = { nowMicros, retentionDays: RETENTION_DAYS };
    const format = { contentCoding: '', format: 'ndjson', kind: batch.kind } as const;
    const { batches } = parseBody({ ...format, data, context, needsDeduplication: false });
    const lines = batches.map(({ accepted, lines }) => ({ kind: batch.kind, count: accepted, lines }));
    await this.#server.store.append(
      (async function* () {
        yield* lines;
      })(),
      { identify: () => identity, nowMicros: BigInt(nowMicros), again: false },
    );
  }

  /** Stores a batch again, as a sender does that got no response. It must be stored once. */
  async #repeat(): Promise<void> {
    const candidates = this.#recent.filter(({ number }) =>
      ['sent', 'stored'].includes(`${this.#stateOf(number)}`),
    );
    const [first, ...rest] = candidates;
    if (first !== undefined) await this.#store(this.#random.pick([first, ...rest]));
  }

  #stateOf(number: number): BatchState | undefined {
    return this.#ledger.content.batches.find(batch => batch.number === number)?.state;
  }

  async #changeTokens(): Promise<void> {
    const active = this.#ledger.content.tokens.filter(
      ([name, state]) => state === 'active' && name !== 'operator',
    );
    const [first, ...rest] = active.map(([name]) => name);
    if (first === undefined || this.#random.chance(0.6)) {
      const name = `t${this.#ledger.content.tokens.length}`;
      return this.#createToken(name, ['query']);
    }
    const name = this.#random.pick([first, ...rest]);
    this.#mark({ token: name, state: 'revoking' });
    await changeTokenFile(this.#tokensFile, tokens => tokens.filter(token => token.name !== name));
    this.#mark({ token: name, state: 'revoked' });
  }

  async #createToken(name: string, scopes: readonly string[]): Promise<void> {
    this.#mark({ token: name, state: 'creating' });
    const created_at = formatTimestamp(BigInt(this.#time.micros));
    const token = { name, sha256: hashSecret(secretOf(name)), scopes, created_at };
    await changeTokenFile(this.#tokensFile, tokens => [...tokens, token]);
    this.#mark({ token: name, state: 'active' });
  }

  get #tokensFile(): string {
    return testConfig(this.#options.dataDirectory).tokensFile;
  }

  /** Erases a project. The server rotates the spool, flushes all records and deletes the old segments. */
  async #erase(): Promise<void> {
    const batches = this.#ledger.content.batches.filter(
      ({ project, state }) => project === ERASED_PROJECT && state !== 'removed',
    );
    this.#markBatches(batches, 'removable');
    this.#mayEraseNewRecords = true; // on a slow machine, the workload does not wait for the end of the erasure
    const url = `${this.#server.internalUrl}/api/admin/erase`;
    const headers = { 'X-API-KEY': secretOf('operator') };
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify({ project: ERASED_PROJECT }),
    });
    await response.arrayBuffer();
    if (response.status !== 202) throw new Error(`erase got the status ${response.status}`);
    const isDone = await this.#until(async () => {
      const { result } = (await (await fetch(url, { headers })).json()) as { result: { state: string } };
      return result.state === 'done';
    });
    if (!isDone) return;
    this.#markBatches(batches, 'removed');
    this.#mayEraseNewRecords = false;
  }

  /** The hourly jobs run: flush of all kinds, deletion of expired records. */
  async #skipHour(): Promise<void> {
    const limit = this.#time.micros + HOUR_MS * 1000 - RETENTION_DAYS * DAY_MICROS;
    const expired = this.#ledger.content.batches.filter(
      ({ timestamp, state }) => timestamp < limit + 60_000_000 && state !== 'removed',
    );
    this.#markBatches(expired, 'removable');
    this.#mark({ clock: this.#time.micros + HOUR_MS * 1000 });
    this.#recent = [];
    this.#time.skip(HOUR_MS);
    const isFlushed = await this.#until(() => {
      const { embedded } = this.#server.store.readStatistics();
      return embedded !== undefined && embedded.activeMemtables + embedded.immutableMemtables === 0;
    });
    if (!isFlushed) return;
    // The hourly job rewrites a part only if it has records that expired a day ago. Here, one that has expired is enough.
    const expiredBefore = BigInt(limit);
    await this.#server.store.maintain({ expire: { expiredBefore, rewriteBefore: expiredBefore } });
    this.#markBatches(
      expired.filter(({ timestamp }) => timestamp < limit),
      'removed',
    );
  }

  /** Two runs of the maintenance, 40 s apart: all kinds are idle then, so that two parts are enough for a compaction. */
  async #compact(): Promise<void> {
    const before = this.#events.length;
    for (let run = 0; run < 2; run++) {
      this.#time.skip(40_000);
      await sleep(60);
    }
    await this.#until(() => this.#events.indexOf('compacted', before) !== -1, 300);
  }

  async #until(condition: () => boolean | Promise<boolean>, waitMs = WAIT_MS): Promise<boolean> {
    for (let waited = 0; waited < waitMs; waited += 20) {
      if (await condition()) return true;
      this.#time.skip(300);
      await sleep(20);
    }
    return false;
  }
}

/** Time of day and monotonic time, which can be skipped. */
class SkippingTime {
  readonly #startMicros: number;
  readonly #startMs: number;
  readonly #timeouts = new Set<{ at: number; handle: NodeJS.Timeout; readonly run: () => void }>();

  constructor(startMicros: number) {
    this.#startMicros = startMicros;
    const now = performance.now.bind(performance);
    performance.now = () => now() + this.#skippedMs; // some modules measure with it directly
    this.#startMs = performance.now();
  }

  #skippedMs = 0;

  get micros(): number {
    return this.#startMicros + Math.round((performance.now() - this.#startMs) * 1000);
  }

  readonly timer: Timer = {
    now: () => performance.now(),
    after: (ms, callback) => {
      const timeout = {
        at: performance.now() + ms,
        handle: setTimeout(() => {}, 0),
        run: () => {
          this.#timeouts.delete(timeout);
          callback();
        },
      };
      this.#timeouts.add(timeout);
      this.#schedule(timeout);
      return () => {
        this.#timeouts.delete(timeout);
        clearTimeout(timeout.handle);
      };
    },
  };

  skip(ms: number): void {
    this.#skippedMs += ms;
    for (const timeout of this.#timeouts) this.#schedule(timeout);
  }

  #schedule(timeout: { at: number; handle: NodeJS.Timeout; readonly run: () => void }): void {
    clearTimeout(timeout.handle);
    timeout.handle = setTimeout(timeout.run, Math.max(0, timeout.at - performance.now())).unref();
  }
}
