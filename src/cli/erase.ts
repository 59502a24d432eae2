// dendro erase: erases the records of a project, in a running server or in a data directory that no server uses.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Invocation, nameOf, readAppConfig, requireText } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { formatTimestamp, parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import type { EraseScope } from '../store/store.ts';
import type { Io } from './io.ts';
import { findServer, noDataDirectory, openLocal, requestResult, type Target } from './target.ts';
import { escapeForTerminal } from './terminal.ts';

const POLL_INTERVAL_MS = 200;

export async function erase(invocation: Invocation, io: Io): Promise<void> {
  const scope = readScope(invocation);
  const server = findServer(invocation);
  const dataDirectory = requireText(invocation, 'data');
  if (!invocation.isOn('yes')) await confirm(scope, server?.url ?? `the data directory ${dataDirectory}`, io);
  if (server === undefined && !existsSync(dataDirectory)) throw noDataDirectory(dataDirectory);
  const target = server ?? (await openLocal(readAppConfig(invocation), io));
  try {
    io.stdout.write(describeReport(scope, await eraseOn(target, scope)));
  } finally {
    await target.close();
  }
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

async function confirm(scope: EraseScope, where: string, { stdin, stderr }: Io): Promise<void> {
  if (!stdin.isTTY || !stderr.isTTY)
    throw new UsageError('--yes is required, because there is no terminal to confirm on');
  const terminal = createInterface({ input: stdin, output: stderr });
  const question = `This erases ${describeScope(scope)} from ${where}. It cannot be undone.\nType the project to confirm: `;
  // The keys Ctrl+C and Ctrl+D reject the question. If the terminal itself is closed, the interface only emits `close`.
  const closed = once(terminal, 'close').then(() => undefined);
  const answer = await Promise.race([terminal.question(question), closed]).catch(() => undefined);
  terminal.close();
  if (answer === undefined) stderr.write('\n'); // the prompt is an unfinished line
  if (answer?.trim() !== scope.project) throw new OperatorError('nothing was erased: not confirmed');
}

/** The result of /api/admin/erase. Only the state `done` has the counts. */
interface EraseStatus {
  readonly state: 'running' | 'done' | 'failed';
  readonly project: string;
  readonly before: string | null;
  readonly records: number;
  readonly quarantined: number;
  readonly damaged_files: number;
}

async function eraseOn(target: Target, scope: EraseScope): Promise<EraseStatus> {
  const { project, beforeMicros } = scope;
  const before = beforeMicros === undefined ? null : formatTimestamp(beforeMicros);
  const init = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ project, before }),
  };
  try {
    let status = await request(target, init);
    while (status?.state === 'running') {
      await sleep(POLL_INTERVAL_MS);
      status = await request(target, {});
    }
    // Another erasure may have started since the last request. Its result says nothing about this one.
    if (status?.state === 'done' && status.project === project && status.before === before) return status;
  } catch (error) {
    if (target.url !== undefined) throw error;
    throw new OperatorError(`not everything was erased: ${(error as Error).message}. Repeat the command`);
  }
  throw new OperatorError(
    'not everything was erased; the log of the server has the reason. Repeat the command',
  );
}

/** Returns null if there was no erasure since the start of the server. */
async function request(target: Target, init: RequestInit): Promise<EraseStatus | null> {
  const policy = { maxAttempts: 10, retryUnreachable: true };
  return (await requestResult(target, '/api/admin/erase', init, policy, 'internal')) as EraseStatus | null;
}

function describeScope({ project, beforeMicros }: EraseScope): string {
  const time = beforeMicros === undefined ? '' : ` from before ${formatTimestamp(beforeMicros)}`;
  return `all records of the project ${escapeForTerminal(project)}${time}`;
}

function describeReport(scope: EraseScope, { records, quarantined, damaged_files }: EraseStatus): string {
  const lines = [`erased ${describeScope(scope)}: ${records} stored, ${quarantined} quarantined`];
  if (records + quarantined === 0)
    lines.push(
      'there were none; check the spelling of --project, or ask the endpoint projects.active (off with --packs none)',
    );
  if (damaged_files > 0)
    lines.push(
      `damaged files that were not changed: ${damaged_files} (in spool/damaged/, or parts/*.damaged and parts/*.unnamed); they may contain records of any project, so delete them`,
    );
  return lines.map(line => `${line}\n`).join('');
}
