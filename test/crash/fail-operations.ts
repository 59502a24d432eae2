// Lets a file operation of a short workload of the real program fail. The request must get 503, or the process must exit with one
// clear line. Afterwards a start without faults must find every acknowledged record, and no half-written file.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../src/demo/random.ts';
import { hashSecret } from '../../src/token/token.ts';
import { changeTokenFile } from '../../src/token/token-file.ts';
import { PROCESS_API_KEY, type ServerProcess, spawnDendro, startServer } from '../support/process.ts';
import { checkState } from './check-state.ts';
import { FAULTS, type Fault, type FileShim } from './file-shim.ts';
import { type BatchEntry, type BatchState, bodyOf, Ledger } from './ledger.ts';
import { secretOf } from './workload.ts';

/** An operation that fails: its number in the server process or in the process of dendro token. */
export interface Failure {
  readonly process: 'server' | 'token';
  readonly operation: number;
  readonly fault: Fault;
}

const ERASE_WAIT_MS = 5_000;
const EXIT_WAIT_MS = 30_000;
/** What a data directory contains after a clean stop. */
const KNOWN_FILES =
  /^(dendro\.duckdb|manifest(\.copy)?\.json|parts|[a-z_]+-\d{6}\.duckdb|format\.json|tokens\.json|tokens-last-used\.json|staging|spool|\d+\.(spool|requests)|\d+-[0-9a-f]{16}\.erased|next-numbers\.json|clean-stop\.json|undelivered\.json|erase\.json|data)$/;

/** Reads a failure as a violation prints it. */
export function parseFailure(text: string): Failure {
  const [process, operation, fault] = text.split(':');
  const found = FAULTS.find(each => each === fault);
  if ((process !== 'server' && process !== 'token') || !(Number(operation) > 0) || found === undefined)
    throw new Error(`${text} is not a failure such as server:17:EIO`);
  return { process, operation: Number(operation), fault: found };
}

/** Runs of the workload, each with one failing operation. */
export class FailingRuns {
  readonly violations: string[] = [];
  lost = 0;
  duplicated = 0;
  readonly #root: string;
  readonly #shim: FileShim;

  constructor(work: string, shim: FileShim) {
    this.#root = join(work, 'root');
    this.#shim = shim;
  }

  async runRandom(runs: number, seed: number): Promise<void> {
    const random = new Random(seed);
    const operations = await this.run(undefined); // without a fault
    for (let run = 0; run < runs; run++) {
      const process = random.chance(0.9) ? 'server' : 'token';
      const operation = 1 + Math.floor(random.next() * operations[process]);
      await this.run({ process, operation, fault: random.pick(FAULTS) });
    }
  }

  /** Returns the number of operations of each process. */
  async run(failure: Failure | undefined): Promise<Readonly<Record<Failure['process'], number>>> {
    rmSync(this.#root, { recursive: true, force: true });
    this.#shim.clear();
    const run = new FailingRun(join(this.#root, 'data'));
    const envOf = (process: Failure['process']) =>
      failure?.process === process ? this.#shim.failAt(failure.operation, failure.fault) : this.#shim.env;
    await run.serve({ DENDRO_API_KEY: PROCESS_API_KEY, ...envOf('server') });
    const server = this.#countOperations();
    await run.createToken({ DENDRO_API_KEY: PROCESS_API_KEY, ...envOf('token') });
    const failed = this.#shim.operations().find(({ error }) => error !== 0);
    const { lost, duplicated } = await run.checkRestart(
      failed?.operation.type === 'unlink' ? failed.path : undefined,
    );
    if (lost) this.lost++;
    if (duplicated) this.duplicated++;
    if (run.problems.length > 0) {
      const name = failure && `${failure.process}:${failure.operation}:${failure.fault}`;
      this.violations.push(
        `${name} (${failed?.operation.type} ${failed?.path}): ${run.problems.join('; ')}
    to reproduce: DENDRO_CRASH_FAIL=${name} npm run test:crash`,
      );
    }
    return { server, token: this.#countOperations() - server };
  }

  #countOperations(): number {
    return this.#shim.operations().filter(({ operation }) => operation.type !== 'marker').length;
  }
}

class FailingRun {
  readonly problems: string[] = [];
  readonly #data: string;
  readonly #ledger = new Ledger({ clock: Date.now() * 1000, batches: [], tokens: [] });
  #nextBatch = 1;

  constructor(dataDirectory: string) {
    this.#data = dataDirectory;
  }

  async serve(env: Record<string, string>): Promise<void> {
    mkdirSync(this.#data, { recursive: true });
    const operator = { name: 'operator', sha256: hashSecret(secretOf('operator')), scopes: ['admin'] };
    const created_at = new Date().toISOString();
    await changeTokenFile(join(this.#data, 'tokens.json'), () => [{ ...operator, created_at }]);
    this.#ledger.apply({ token: 'operator', state: 'active' });
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

  async createToken(env: Record<string, string>): Promise<void> {
    const args = ['token', 'create', '--name', 't1', '--scope', 'query', '--data', this.#data];
    const { code, stderr } = await spawnDendro(args, { env });
    if (code !== 0) this.#requireOneLine(stderr);
    this.#ledger.apply({ token: 't1', state: code === 0 ? 'active' : 'creating' });
  }

  /** `undeletable`: the file whose deletion failed. It may be left. */
  async checkRestart(undeletable: string | undefined): Promise<{ lost: boolean; duplicated: boolean }> {
    const { clock } = this.#ledger.content;
    const result = await checkState({ dataDirectory: this.#data, starts: 2, clock });
    if ('error' in result) this.problems.push(`the next start fails: ${result.error}`);
    const found = 'error' in result ? [] : result.contents.map(content => this.#ledger.compare(content));
    for (const { lost, duplicated, other } of found) this.problems.push(...lost, ...duplicated, ...other);
    const isUnknown = (file: string) =>
      !KNOWN_FILES.test(basename(file)) && join(this.#data, file) !== undeletable;
    const unknown = readdirSync(this.#data, { recursive: true, encoding: 'utf8' }).filter(isUnknown);
    if (unknown.length > 0) this.problems.push(`files are left: ${unknown.join(', ')}`);
    return {
      lost: found.some(({ lost }) => lost.length > 0),
      duplicated: found.some(({ duplicated }) => duplicated.length > 0),
    };
  }

  /** Returns the response; undefined if the process has exited, as it may. */
  async #fetch(server: ServerProcess, path: string, init: RequestInit): Promise<Response | undefined> {
    try {
      return await fetch(`${server.internalUrl}${path}`, init);
    } catch (error) {
      const ended = await Promise.race([server.ended, sleep(EXIT_WAIT_MS)]);
      if (!ended)
        this.problems.push(`${path}: no response, but the process runs: ${(error as Error).message}`);
      return undefined;
    }
  }

  async #post(server: ServerProcess): Promise<void> {
    const batch: BatchEntry = {
      ...{ number: this.#nextBatch++, kind: 'edge', project: 'alpha', records: 20, units: 10 },
      ...{ timestamp: Date.now() * 1000, state: 'sent' },
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
    if (state === undefined) this.problems.push(`batch ${batch.number} got the status ${response?.status}`);
    this.#ledger.apply({ batch: { ...batch, state: state ?? 'sent' } });
    await sleep(300); // the server applies it
  }

  /** Erases a project without records, which flushes all records and deletes segments of the spool. */
  async #erase(server: ServerProcess): Promise<void> {
    const headers = { 'X-API-KEY': secretOf('operator') };
    const path = '/api/admin/erase';
    const started = await this.#fetch(server, path, { method: 'POST', headers, body: '{"project":"none"}' });
    await started?.arrayBuffer();
    if (started !== undefined && started.status !== 202 && started.status !== 503)
      this.problems.push(`erase got the status ${started.status}`);
    for (let waited = 0; started?.status === 202 && waited < ERASE_WAIT_MS; waited += 50) {
      const response = await this.#fetch(server, path, { headers });
      if (response === undefined || response.status !== 200) return;
      const { result } = (await response.json()) as { result: { state: string } };
      if (result.state !== 'running') return;
      await sleep(50);
    }
  }

  /** Lines of the log are JSON. */
  #requireOneLine(stderr: string): void {
    const lines = stderr.split('\n').filter(line => line !== '' && !line.startsWith('{'));
    if (lines.length !== 1 || !lines[0]?.startsWith('dendro: '))
      this.problems.push(`the process did not exit with one line: ${lines.join(' | ')}`);
  }
}
