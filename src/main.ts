// The entry point: finds the command, runs it, and maps an error to an exit code: 2 for wrong usage, 1 for everything else.
// Expected errors print one line; only an internal error prints its stack.
import { commands } from './cli/commands.ts';
import { describeCommand, describeProgram } from './cli/help.ts';
import { escapeForTerminal, escapeLinesForTerminal } from './cli/terminal.ts';
import { readInvocation } from './config.ts';
import { DendroError, OperatorError, UsageError } from './domain/errors.ts';
import { readVersion } from './system/version.ts';

/** Every file that the program creates is private, also those that DuckDB creates. */
const UMASK = 0o077;

async function main(args: readonly string[]): Promise<void> {
  process.umask(UMASK);
  const [name = '', ...rest] = args;
  if (name === '--version') return print(readVersion());
  if (name === '' || name === '--help' || name === 'help') return print(describeProgram());
  const command = commands.find(candidate => candidate.name === name);
  if (command === undefined)
    throw new UsageError(`unknown command ${name}; commands: ${commands.map(c => c.name).join(', ')}`);
  if (rest.includes('--help')) return print(describeCommand(command));
  const run = await command.load();
  await run(readInvocation(rest, process.env, command.flags));
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function reportError(error: unknown): void {
  const isExpected =
    error instanceof UsageError || error instanceof OperatorError || error instanceof DendroError;
  const text = isExpected
    ? escapeForTerminal(`${error.message}${formatCause(error)}`)
    : escapeLinesForTerminal(String((error as Error)?.stack ?? error));
  process.stderr.write(`dendro: ${text}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

/** The cause of a DendroError. Its message is for clients and hides the cause; the operator may see it. */
function formatCause(error: Error): string {
  if (!(error instanceof DendroError && error.cause instanceof Error)) return '';
  const { message, code } = error.cause as NodeJS.ErrnoException;
  return ` (${(message || code || '').split('\n', 1)[0]})`;
}

await main(process.argv.slice(2)).catch(reportError);
