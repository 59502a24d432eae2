// Lets each file operation of a short workload of the real program fail once. The request must get 503, or the process must exit
// with one clear line. Afterwards a start without faults must find every acknowledged record, and no half-written file.
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../src/demo/random.ts';
import { hashSecret } from '../../src/token/token.ts';
import { changeTokenFile } from '../../src/token/token-file.ts';
import {
  type Outcome,
  PROCESS_API_KEY,
  runDendro,
  type ServerProcess,
  startServer,
} from '../support/process.ts';
import type { CheckerPool } from './checker-pool.ts';
import { createFileShim, FAULTS, type Fault, type FileShim } from './file-shim.ts';
import { type BatchEntry, type BatchState, bodyOf, Ledger, type Marker } from './ledger.ts';
import { workParent } from './simulate.ts';
import { secretOf } from './workload.ts';

export interface FailureResult {
  /** Runs of the workload, each with one failing operation. */
  runs: number;
  /** Different operations that failed, by type and file. */
  readonly operations: Set<string>;
  lost: number;
  duplicated: number;
  readonly violations: string[];
}

/** An operation that fails: its number in the server process or in the process of dendro token. */
export interface Failure {
  readonly process: 'server' | 'token';
  readonly operation: number;
  readonly fault: Fault;
}

const ERASE_WAIT_MS = 5_000;
const EXIT_WAIT_MS = 3_000;
/** What a data directory contains after a clean stop. */
const KNOWN_FILES =
  /^(dendro\.duckdb|manifest(\.previous)?\.json|parts|[a-z_]+-\d{6}\.duckdb|format\.json|tokens\.json|tokens-last-used\.json|staging|spool|\d+\.(spool|requests)|next-numbers\.json|clean-stop\.json|undelivered\.json|erase\.json|data)$/;

export interface FailureOptions {
  readonly seed: number;
  readonly seconds: number;
  /** Only this failure. */
  readonly only?: Failure | undefined;
  readonly print?: (line: string) => void;
}

/** Tries failures in a random order until the time is over, two at a time. */
export async function failOperations(options: FailureOptions, pool: CheckerPool): Promise<FailureResult> {
  const endsAt = performance.now() + options.seconds * 1000;
  const result: FailureResult = { runs: 0, operations: new Set(), lost: 0, duplicated: 0, violations: [] };
  const failures =
    options.only === undefined
      ? withShim(async (work, shim) =>
          shuffle(await listFailures(work, shim, pool), new Random(options.seed)),
        )
      : [options.only];
  const left = (await failures) ?? [];
  const runLane = () =>
    withShim(async (work, shim) => {
      for (let next = left.pop(); next && performance.now() < endsAt; next = left.pop()) {
        const { problems, failed } = await new FailingRun(work, shim, pool, result).run(next);
        result.runs++;
        if (failed !== undefined) result.operations.add(failed);
        if (problems.length === 0) continue;
        const violation = describeViolation(next, failed, problems);
        result.violations.push(violation);
        options.print?.(violation);
      }
    });
  await Promise.all([runLane(), runLane()]);
  return result;
}

function describeViolation(
  { process, operation, fault }: Failure,
  failed: string | undefined,
  problems: readonly string[],
): string {
  return `${fault} at operation ${operation} of the ${process} process (${failed}): ${problems.join('; ')}
    to reproduce: npm run test:crash -- --fail ${process}:${operation}:${fault}`;
}

/** Reads a failure as `describeViolation` prints it. */
export function parseFailure(text: string): Failure {
  const [process, operation, fault] = text.split(':');
  const parsed = {
    process: process === 'token' ? ('token' as const) : ('server' as const),
    operation: Number(operation),
    fault: FAULTS.find(each => each === fault) ?? 'EIO',
  };
  if (!(parsed.operation > 0)) throw new Error(`${text} is not a failure such as server:17:EIO`);
  return parsed;
}

/** Returns undefined if there is no C compiler. */
async function withShim<T>(use: (work: string, shim: FileShim) => Promise<T>): Promise<T | undefined> {
  const work = mkdtempSync(join(workParent(), 'dendro-fail-'));
  const shim = createFileShim(join(work, 'root'));
  try {
    return shim && (await use(work, shim));
  } finally {
    shim?.remove();
    rmSync(work, { recursive: true, force: true });
  }
}

/** Runs the workload once without a fault and counts its operations. */
async function listFailures(work: string, shim: FileShim, pool: CheckerPool): Promise<Failure[]> {
  const run = new FailingRun(work, shim, pool);
  const { problems } = await run.run(undefined);
  if (problems.length > 0) throw new Error(`the workload fails without a fault: ${problems.join('; ')}`);
  const failures: Failure[] = [];
  for (const process of ['server', 'token'] as const)
    for (let operation = 1; operation <= run.operationsOf[process]; operation++)
      for (const fault of FAULTS) failures.push({ process, operation, fault });
  return failures;
}

class FailingRun {
  readonly #work: string;
  readonly #data: string;
  readonly #shim: FileShim;
  readonly #pool: CheckerPool;
  readonly #result: Pick<FailureResult, 'lost' | 'duplicated'>;
  readonly #ledger = new Ledger({ clock: Date.now() * 1000, batches: [], tokens: [] });
  readonly #problems: string[] = [];
  readonly operationsOf = { server: 0, token: 0 };
  #nextBatch = 1;

  constructor(
    work: string,
    shim: FileShim,
    pool: CheckerPool,
    result: Pick<FailureResult, 'lost' | 'duplicated'> = { lost: 0, duplicated: 0 },
  ) {
    this.#work = work;
    this.#data = join(work, 'root', 'data');
    this.#shim = shim;
    this.#pool = pool;
    this.#result = result;
  }

  /** `failed`: the operation that failed. */
  async run(
    failure: Failure | undefined,
  ): Promise<{ problems: readonly string[]; failed: string | undefined }> {
    rmSync(join(this.#work, 'root'), { recursive: true, force: true });
    mkdirSync(this.#data, { recursive: true });
    const created_at = new Date().toISOString();
    const operator = {
      name: 'operator',
      sha256: hashSecret(secretOf('operator')),
      scopes: ['admin'],
      created_at,
    };
    await changeTokenFile(join(this.#data, 'tokens.json'), () => [operator]);
    this.#mark({ token: 'operator', state: 'active' });
    this.#shim.clear();
    const envOf = (process: Failure['process']) => ({
      DENDRO_API_KEY: PROCESS_API_KEY,
      ...(failure?.process === process
        ? this.#shim.failAt(failure.operation, failure.fault)
        : this.#shim.env),
    });
    await this.#serve(envOf('server'));
    this.operationsOf.server = this.#countOperations();
    await this.#createToken(envOf('token'));
    this.operationsOf.token = this.#countOperations() - this.operationsOf.server;
    const failed = this.#shim.operations().find(({ error }) => error !== 0);
    await this.#checkRestart(failed?.operation.type === 'unlink' ? failed.path : undefined);
    return {
      problems: this.#problems,
      failed: failed && `${failed.operation.type} ${failed.path.slice(this.#data.length + 1)}`,
    };
  }

  #mark(marker: Marker): void {
    this.#ledger.apply(marker);
  }

  #countOperations(): number {
    return this.#shim.operations().filter(({ operation }) => operation.type !== 'marker').length;
  }

  async #serve(env: Record<string, string>): Promise<void> {
    let server: ServerProcess;
    try {
      server = await startServer(['--data', this.#data], { env });
    } catch (error) {
      return this.#requireOneLine((error as Error).message.replace(/^exited with \S+ /, ''));
    }
    try {
      await this.#post(server);
      await this.#post(server);
      await this.#erase(server);
      await this.#post(server);
      const { code, stderr } = await server.stop();
      if (code !== 0) this.#requireOneLine(stderr);
    } finally {
      server.signal('SIGKILL');
      await server.ended;
    }
  }

  /** Returns the response; undefined if the process has exited, as it may. */
  async #fetch(server: ServerProcess, path: string, init: RequestInit): Promise<Response | undefined> {
    try {
      return await fetch(`${server.internalUrl}${path}`, init);
    } catch (error) {
      const ended = await Promise.race([server.ended, sleep(EXIT_WAIT_MS)]);
      if (!ended)
        this.#problems.push(`${path}: no response, but the process runs: ${(error as Error).message}`);
      return undefined;
    }
  }

  async #post(server: ServerProcess): Promise<void> {
    const number = this.#nextBatch++;
    const timestamp = Date.now() * 1000;
    const batch: BatchEntry = {
      ...{ number, kind: 'edge', project: 'alpha', records: 20, units: 10, timestamp, state: 'sent' },
    };
    const response = await this.#fetch(server, '/api/logs?source_name=edge', {
      method: 'POST',
      headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/x-ndjson' },
      body: bodyOf(batch),
    });
    await response?.arrayBuffer();
    // A request that gets 503 is not stored.
    const states: Readonly<Record<number, BatchState>> = { 200: 'stored', 503: 'removed' };
    const state = response === undefined ? 'sent' : states[response.status];
    if (state === undefined) this.#problems.push(`batch ${number} got the status ${response?.status}`);
    this.#mark({ batch: { ...batch, state: state ?? 'sent' } });
    await sleep(300); // the server applies it
  }

  /** Erases a project without records, which flushes all records and deletes segments of the spool. */
  async #erase(server: ServerProcess): Promise<void> {
    const headers = { 'X-API-KEY': secretOf('operator') };
    const path = '/api/admin/erase';
    const started = await this.#fetch(server, path, { method: 'POST', headers, body: '{"project":"none"}' });
    await started?.arrayBuffer();
    if (started !== undefined && started.status !== 202 && started.status !== 503)
      this.#problems.push(`erase got the status ${started.status}`);
    for (let waited = 0; started?.status === 202 && waited < ERASE_WAIT_MS; waited += 50) {
      const response = await this.#fetch(server, path, { headers });
      if (response === undefined || response.status !== 200) return;
      const { result } = (await response.json()) as { result: { state: string } };
      if (result.state !== 'running') return;
      await sleep(50);
    }
  }

  async #createToken(env: Record<string, string>): Promise<void> {
    const args = ['token', 'create', '--name', 't1', '--scope', 'query', '--data', this.#data];
    const outcome: Outcome = await runDendro(args, { env });
    if (outcome.code !== 0) this.#requireOneLine(outcome.stderr);
    this.#mark({ token: 't1', state: outcome.code === 0 ? 'active' : 'creating' });
  }

  /** Lines of the log are JSON. */
  #requireOneLine(stderr: string): void {
    const lines = stderr.split('\n').filter(line => line !== '' && !line.startsWith('{'));
    if (lines.length !== 1 || !lines[0]?.startsWith('dendro: '))
      this.#problems.push(`the process did not exit with one line: ${lines.join(' | ')}`);
  }

  /** `undeletable`: the file whose deletion failed. It may be left. */
  async #checkRestart(undeletable: string | undefined): Promise<void> {
    const { clock } = this.#ledger.content;
    const result = await this.#pool.check({ dataDirectory: this.#data, starts: 2, clock });
    if ('error' in result) {
      this.#problems.push(`the next start fails: ${result.error}`);
      return;
    }
    for (const content of result.contents) {
      const { lost, duplicated, other } = this.#ledger.compare(content);
      if (lost.length > 0) this.#result.lost++;
      if (duplicated.length > 0) this.#result.duplicated++;
      this.#problems.push(...lost, ...duplicated, ...other);
    }
    const files = readdirSync(this.#data, { recursive: true, encoding: 'utf8' });
    const unknown = files.filter(
      file => !KNOWN_FILES.test(basename(file)) && join(this.#data, file) !== undeletable,
    );
    if (unknown.length > 0) this.#problems.push(`files are left: ${unknown.join(', ')}`);
  }
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map(item => ({ item, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
