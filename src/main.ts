// From the command line to a command, and from what it throws to an exit code: 2 for a wrong call, 1 for what else
// went wrong. What the operator can mend is one line; only a defect of ours shows its stack.
import { commands } from './cli/commands.ts';
import { describeCommand, describeProgram } from './cli/help.ts';
import { readInvocation } from './config.ts';
import { DendroError, OperatorError, UsageError } from './domain/errors.ts';
import { readVersion } from './system/version.ts';

async function main(args: readonly string[]): Promise<void> {
  const [name = '', ...rest] = args;
  if (name === '--version') return print(readVersion());
  if (name === '' || name === '--help' || name === 'help') return print(describeProgram());
  const command = commands.find(candidate => candidate.name === name);
  if (command === undefined)
    throw new UsageError(`there is no command ${name}; commands are ${commands.map(c => c.name).join(', ')}`);
  if (rest.includes('--help')) return print(describeCommand(command));
  const run = await command.load();
  await run(readInvocation(rest, process.env, command.flags));
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function report(error: unknown): void {
  const isPlain =
    error instanceof UsageError || error instanceof OperatorError || error instanceof DendroError;
  const text = isPlain ? `${error.message}${reasonOf(error)}` : ((error as Error)?.stack ?? error);
  process.stderr.write(`dendro: ${text}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

/** A caller of the service is told that the store is out of reach, the operator why. */
function reasonOf(error: Error): string {
  if (!(error instanceof DendroError && error.cause instanceof Error)) return '';
  const { message, code } = error.cause as NodeJS.ErrnoException;
  return ` (${(message || code || '').split('\n', 1)[0]})`;
}

await main(process.argv.slice(2)).catch(report);
