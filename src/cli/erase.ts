// dendro erase: erases the records of a project in a running server (--url), or in a data directory that no server uses.
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Invocation, nameOf, readStoreOptions } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { formatTimestamp, parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import { type EraseReport, Erasure } from '../intake/erasure.ts';
import { Intake } from '../intake/intake.ts';
import { createStoreCallbacks, Quarantine } from '../intake/quarantine.ts';
import { logTo } from '../observe/log.ts';
import { openStore } from '../store/open-store.ts';
import type { EraseScope } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { systemTimer } from '../system/timer.ts';
import { parseJson, type RunningServer, readErrorMessage, readRunningServer } from './running-server.ts';
import { sendRequest } from './send-request.ts';
import { escapeForTerminal } from './terminal.ts';

/**
 * For an intake that accepts no requests and only moves the records of the spool to the store. It keeps all entries of the
 * idempotency index until they expire, so that the next server still recognises repeats.
 */
const INTAKE_OPTIONS = { retentionDays: 1, queueBytes: 0, idempotencyBytes: Number.POSITIVE_INFINITY };
const POLL_MS = 500;
const RETRIES = { maxAttempts: 10, retryUnreachable: true };

export async function erase(invocation: Invocation): Promise<void> {
  const scope = readScope(invocation);
  const server = readRunningServer(invocation);
  if (!invocation.isOn('yes'))
    await confirm(scope, server?.url ?? `the data directory ${invocation.text('data')}`);
  const report =
    server === undefined ? await eraseInDirectory(invocation, scope) : await eraseOnServer(server, scope);
  process.stdout.write(describeReport(scope, report));
}

function readScope(invocation: Invocation): EraseScope {
  const [project, ...others] = invocation.many('project');
  if (project === undefined || project === '' || others.length > 0)
    throw new UsageError('--project is required, once: the project whose records are erased');
  const before = invocation.text('before');
  if (before === undefined) return { project };
  const beforeMicros = parseTimestamp(before);
  if (beforeMicros === undefined)
    throw new UsageError(
      `${nameOf(invocation, 'before')} ${before} is not a time; allowed: ${TIMESTAMP_FORMS}`,
    );
  return { project, beforeMicros };
}

async function confirm(scope: EraseScope, where: string): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError('--yes is required, because there is no terminal to confirm on');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const question = `This erases ${describeScope(scope)} from ${where}. It cannot be undone.\nType the project to confirm: `;
  const answer = await terminal.question(question).finally(() => terminal.close());
  if (answer.trim() !== scope.project) throw new OperatorError('nothing was erased: not confirmed');
}

async function eraseInDirectory(invocation: Invocation, scope: EraseScope): Promise<EraseReport> {
  const options = readStoreOptions(invocation);
  const { dataDirectory } = options;
  if (!existsSync(dataDirectory)) throw new OperatorError(`there is no data directory ${dataDirectory}`);
  const [clock, timer, observe] = [systemClock, systemTimer, logTo(process.stdout, process.stderr)];
  const quarantine = new Quarantine(dataDirectory, observe);
  const store = await openStore(options, createStoreCallbacks(quarantine, clock, observe));
  // While the intake waits, only its timer is left, and that does not keep the process alive.
  const keepAlive = setInterval(() => {}, 60_000);
  try {
    const bodyParser = { parse: () => Promise.reject(new Error('unused')), close: async () => {} };
    const intake = await Intake.open(
      { dataDirectory, ...INTAKE_OPTIONS },
      { store, quarantine, bodyParser, clock, timer, idempotencyTimer: timer, observe },
    );
    try {
      const erasure = await Erasure.open({
        ...{ dataDirectory, intake, store, quarantine },
        clearCache: () => {},
        queryTimeoutMs: options.queryTimeoutSeconds * 1000,
        observe: () => {}, // this command reports the result or the error itself
      });
      const report = await erasure.run(scope);
      await erasure.resume(); // other erasures that an earlier process did not finish
      return report;
    } finally {
      await intake.close();
      await quarantine.idle();
    }
  } catch (error) {
    throw new OperatorError(`not everything was erased: ${(error as Error).message}. Repeat the command`);
  } finally {
    clearInterval(keepAlive);
    await store.close();
  }
}

interface StatusResult extends EraseReport {
  readonly state: 'running' | 'done' | 'failed';
  readonly project: string;
  readonly damaged_files: number;
}

async function eraseOnServer(server: RunningServer, scope: EraseScope): Promise<EraseReport> {
  const { project, beforeMicros } = scope;
  const before = beforeMicros === undefined ? undefined : formatTimestamp(beforeMicros);
  let status = await request(server, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ project, before }),
  });
  while (status?.state === 'running') {
    await sleep(POLL_MS);
    status = await request(server, {});
  }
  if (status?.state !== 'done' || status.project !== project)
    throw new OperatorError(
      'not everything was erased; the log of the server has the reason. Repeat the command',
    );
  return { ...status, damagedFiles: status.damaged_files };
}

async function request(server: RunningServer, init: RequestInit): Promise<StatusResult | undefined> {
  const { status, body } = await sendRequest(server, '/api/admin/erase', init, RETRIES);
  const text = body.toString('utf8');
  const response = parseJson(text) as { result?: StatusResult | null } | undefined;
  if (status < 300 && response?.result !== undefined) return response.result ?? undefined;
  const reason =
    status === 404 ? 'it has no such route; use the URL of the internal listener' : readErrorMessage(text);
  throw new OperatorError(`${server.url} responded with ${status}: ${reason ?? 'not a response of Dendro'}`);
}

function describeScope({ project, beforeMicros }: EraseScope): string {
  const time = beforeMicros === undefined ? '' : ` from before ${formatTimestamp(beforeMicros)}`;
  return `all records of the project ${escapeForTerminal(project)}${time}`;
}

function describeReport(scope: EraseScope, { records, quarantined, damagedFiles }: EraseReport): string {
  const lines = [`erased ${describeScope(scope)}: ${records} stored, ${quarantined} quarantined`];
  if (damagedFiles > 0)
    lines.push(
      `not changed: ${damagedFiles} files in spool/damaged/ and dendro.duckdb.wal.damaged*, which may contain records of any project; delete them`,
    );
  return lines.map(line => `${line}\n`).join('');
}
