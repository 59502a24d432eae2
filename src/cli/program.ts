// Runs the command that the arguments name, or prints the version or a help text.
import { readInvocation } from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { UsageError } from '../domain/errors.ts';
import { readVersion } from '../system/version.ts';
import { type Command, commands } from './commands.ts';
import { describeCommand, describeProgram } from './help.ts';
import { rejectArguments } from './reject-arguments.ts';

/** `args` are the arguments after the program's name. Throws a UsageError if they are wrong. */
export async function runProgram(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const [name = 'help', ...rest] = args;
  switch (name) {
    case 'version':
    case '--version':
    case '-v':
      rejectArguments(rest);
      return print(readVersion());
    case 'help':
    case '--help':
    case '-h':
      return printHelp(rest);
  }
  const command = findCommand(name);
  if (asksForHelp(rest)) return print(describeCommand(command));
  const run = await command.load();
  await run(readInvocation(rest, environment, command.flags, command.listener));
}

function printHelp([name, ...others]: readonly string[]): void {
  rejectArguments(others);
  print(name === undefined ? describeProgram() : describeCommand(findCommand(name)));
}

function findCommand(name: string): Command {
  const command = commands.find(candidate => candidate.name === name);
  if (command !== undefined) return command;
  if (name.startsWith('-'))
    throw new UsageError(`${name}: the command comes before its flags: dendro COMMAND [FLAGS]`);
  const names = [...commands.map(({ name }) => name), 'help', 'version'];
  throw new UsageError(`unknown command ${name}; ${suggest(name, names, 'commands')}`);
}

/** A help flag takes precedence over all other arguments. After `--`, nothing is a flag. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).some(arg => arg === '--help' || arg === '-h');
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
