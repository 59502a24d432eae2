// dendro erase: erases the records of a project in a running server (--url), or in a data directory that no server uses.
import { once } from 'node:events';
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
import { withConversionBar } from './conversion-bar.ts';
import { createResponseError, parseJson, type RunningServer, readRunningServer } from './running-server.ts';
import { type RetryPolicy, sendRequest } from './send-request.ts';
import { escapeForTerminal } from './terminal.ts';

/**
 * The intake accepts no requests here. It only applies the records of the spool to the store, so `retentionDays` and `queueBytes`
 * have no effect. It keeps all entries of the idempotency index until they expire, so that the next server still recognizes
 * repeats.
 */
const INTAKE_OPTIONS = { retentionDays: 1, queueBytes: 0, idempotencyBytes: Number.POSITIVE_INFINITY };
const POLL_INTERVAL_MS = 500;
const RETRY_POLICY: RetryPolicy = { maxAttempts: 10, retryUnreachable: true };

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
  // The keys Ctrl+C and Ctrl+D reject the question. If the terminal itself is closed, the interface only emits `close`.
  const closed = once(terminal, 'close').then(() => undefined);
  const answer = await Promise.race([terminal.question(question), closed]).catch(() => undefined);
  terminal.close();
  if (answer === undefined) process.stderr.write('\n'); // the prompt is an unfinished line
  if (answer?.trim() !== scope.project) throw new OperatorError('nothing was erased: not confirmed');
}

async function eraseInDirectory(invocation: Invocation, scope: EraseScope): Promise<EraseReport> {
  const options = readStoreOptions(invocation);
  const { dataDirectory } = options;
  if (!existsSync(dataDirectory)) throw new OperatorError(`there is no data directory ${dataDirectory}`);
  const [clock, timer, observe] = [systemClock, systemTimer, logTo(process.stdout, process.stderr)];
  const quarantine = new Quarantine(dataDirectory, observe);
  const store = await withConversionBar(observe, process.stderr, observeOpening =>
    openStore(options, createStoreCallbacks(quarantine, clock, observeOpening)),
  );
  // The timer of the intake does not keep the process alive, so the process would exit while the intake waits.
  const keepAlive = setInterval(() => {}, 60_000);
  try {
    const bodyParser = { parse: () => Promise.reject(new Error('unused')), close: async () => {} };
    const intake = await Intake.open(
      { dataDirectory, ...INTAKE_OPTIONS },
      { store, quarantine, bodyParser, clock, timer, idempotencyTimer: timer, observe },
    );
    try {
      const erasure = await Erasure.open({
        dataDirectory,
        intake,
        store,
        quarantine,
        clearCache: () => {},
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

/** The result of /api/admin/erase. Only the state `done` has the counts. */
interface StatusResult extends Omit<EraseReport, 'damagedFiles'> {
  readonly state: 'running' | 'done' | 'failed';
  readonly project: string;
  readonly before: string | null;
  readonly damaged_files: number;
}

async function eraseOnServer(server: RunningServer, scope: EraseScope): Promise<EraseReport> {
  const { project, beforeMicros } = scope;
  const before = beforeMicros === undefined ? null : formatTimestamp(beforeMicros);
  let status = await request(server, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ project, before }),
  });
  while (status?.state === 'running') {
    await sleep(POLL_INTERVAL_MS);
    status = await request(server, {});
  }
  // Another erasure may have started since the last request. Its result says nothing about this one.
  if (status?.state !== 'done' || status.project !== project || status.before !== before)
    throw new OperatorError(
      'not everything was erased; the log of the server has the reason. Repeat the command',
    );
  return { ...status, damagedFiles: status.damaged_files };
}

/** Returns undefined if there was no erasure since the start of the server. */
async function request(server: RunningServer, init: RequestInit): Promise<StatusResult | undefined> {
  const { status: httpStatus, body } = await sendRequest(server, '/api/admin/erase', init, RETRY_POLICY);
  const text = body.toString('utf8');
  const response = parseJson(text) as { result?: StatusResult | null } | undefined;
  if (httpStatus < 300 && response?.result !== undefined) return response.result ?? undefined;
  const hint = httpStatus === 404 ? 'use the URL of the internal listener' : undefined;
  throw createResponseError(server.url, httpStatus, text, hint);
}

function describeScope({ project, beforeMicros }: EraseScope): string {
  const time = beforeMicros === undefined ? '' : ` from before ${formatTimestamp(beforeMicros)}`;
  return `all records of the project ${escapeForTerminal(project)}${time}`;
}

function describeReport(scope: EraseScope, { records, quarantined, damagedFiles }: EraseReport): string {
  const lines = [`erased ${describeScope(scope)}: ${records} stored, ${quarantined} quarantined`];
  if (damagedFiles > 0)
    lines.push(
      `damaged files that were not changed: ${damagedFiles} (in spool/damaged/, or parts/*.damaged and parts/*.unnamed); they may contain records of any project, so delete them`,
    );
  return lines.map(line => `${line}\n`).join('');
}
