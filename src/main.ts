// The entry point: runs the program, and maps an error to an exit code: 2 for wrong usage, 1 for everything else.
// Expected errors print one line; only an internal error prints its stack.
import { runProgram } from './cli/program.ts';
import { escapeForTerminal, escapeLinesForTerminal } from './cli/terminal.ts';
import { DendroError, OperatorError, UsageError } from './domain/errors.ts';
import { isDiskFull, isQuotaExceeded, QUOTA_EXCEEDED } from './system/disk-full.ts';

/** Every file that the program creates is private, also those that DuckDB creates. */
const UMASK = 0o077;

function reportError(error: unknown): void {
  const isExpected =
    error instanceof UsageError ||
    error instanceof OperatorError ||
    error instanceof DendroError ||
    isSystemError(error);
  const text = isExpected
    ? escapeForTerminal(`${isQuotaExceeded(error) ? QUOTA_EXCEEDED : error.message}${formatCause(error)}`)
    : escapeLinesForTerminal(String((error as Error)?.stack ?? error));
  process.stderr.write(`dendro: ${text}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

/** Besides a full disk: a read-only or broken disk, too many open files. The message names the cause and the operation. */
const SYSTEM_ERRORS = ['EROFS', 'EIO', 'EMFILE', 'ENFILE'];

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return isDiskFull(error) || SYSTEM_ERRORS.includes((error as NodeJS.ErrnoException)?.code ?? '');
}

/** The cause of a DendroError. The error's message is for clients and hides the cause, but the operator may see the cause. */
function formatCause(error: Error): string {
  if (!(error instanceof DendroError && error.cause instanceof Error)) return '';
  const { message, code } = error.cause as NodeJS.ErrnoException;
  return ` (${(message || code || '').split('\n', 1)[0]})`;
}

/** The program that reads the output has exited, such as `head`. Standard output can be a pipe or a socket. */
const READER_IS_GONE = ['EPIPE', 'ECONNRESET'];

/**
 * Without a handler, an output that cannot be written would end the process with a stack trace. With it, the command continues
 * and loses only its output: `serve` keeps serving, `ingest` loads its remaining files.
 */
function handleOutputErrors(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (!READER_IS_GONE.includes(error.code ?? '')) reportError(error);
  });
  process.stderr.on('error', () => {}); // there is no other place to report it
}

process.umask(UMASK);
handleOutputErrors();
await runProgram(process.argv.slice(2), process.env).catch(reportError);
