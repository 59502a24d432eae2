// Runs the command that the arguments name, or prints the version or a help text.
import {
  FLAGS,
  type FlagName,
  type ListenerName,
  readInvocation,
  URL_VARIABLES,
  variableOf,
} from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { DendroError, OperatorError, UsageError } from '../domain/errors.ts';
import { isDiskFull, isQuotaExceeded, QUOTA_EXCEEDED } from '../system/disk-full.ts';
import { readVersion } from '../system/version.ts';
import { type Command, commands } from './commands.ts';
import type { Io } from './io.ts';
import { escapeForTerminal, escapeLinesForTerminal } from './terminal.ts';

/** `args` are the arguments after the program's name. Returns the exit code: 2 for wrong usage, 1 for any other failure. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  try {
    const code = await runCommand(args, io);
    return typeof code === 'number' ? code : 0;
  } catch (error) {
    reportError(error, io);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function runCommand(args: readonly string[], io: Io): Promise<unknown> {
  const [name = 'help', ...rest] = args;
  switch (name) {
    case 'version':
    case '--version':
    case '-v':
      rejectArguments(rest);
      return print(io, readVersion());
    case 'help':
    case '--help':
    case '-h': {
      const [topic, ...others] = rest;
      rejectArguments(others);
      return print(io, topic === undefined ? describeProgram() : describeCommand(findCommand(topic)));
    }
  }
  const command = findCommand(name);
  if (asksForHelp(rest)) return print(io, describeCommand(command));
  const invocation = readInvocation(rest, io.env, command.flags, command.listener);
  if (command.usage === '') rejectArguments(invocation.positionals);
  return (await command.load())(invocation, io);
}

/** Expected errors print one line; only an internal error prints its stack. */
export function reportError(error: unknown, { stderr }: Pick<Io, 'stderr'>): void {
  const isExpected =
    error instanceof UsageError ||
    error instanceof OperatorError ||
    error instanceof DendroError ||
    isSystemError(error);
  const text = isExpected
    ? escapeForTerminal(`${isQuotaExceeded(error) ? QUOTA_EXCEEDED : error.message}${formatCause(error)}`)
    : escapeLinesForTerminal(String((error as Error)?.stack ?? error));
  stderr.write(`dendro: ${text}\n`);
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

function findCommand(name: string): Command {
  const command = commands.find(candidate => candidate.name === name);
  if (command !== undefined) return command;
  if (name.startsWith('-'))
    throw new UsageError(`${name}: the command comes before its flags: dendro COMMAND [FLAGS]`);
  const names = [...commands.map(({ name }) => name), 'help', 'version'];
  throw new UsageError(`unknown command ${name}; ${suggest(name, names, 'commands')}`);
}

function rejectArguments([unexpected]: readonly string[]): void {
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
}

/** A help flag takes precedence over all other arguments. After `--`, nothing is a flag. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).some(arg => arg === '--help' || arg === '-h');
}

function print({ stdout }: Io, text: string): undefined {
  stdout.write(`${text}\n`);
}

function describeProgram(): string {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2;
  return [
    'Dendro: saved log queries, served as HTTP endpoints.',
    '',
    'Usage: dendro COMMAND [FLAGS]',
    '',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`),
    '',
    'dendro help COMMAND lists the flags of a command, each with its environment variable (also: dendro COMMAND --help or -h).',
    'dendro version prints the version (also: --version or -v).',
  ].join('\n');
}

function describeCommand({ name, usage, summary, flags, examples, listener }: Command): string {
  return [
    `Usage: dendro ${name}${usage === '' ? '' : ` ${usage}`} [FLAGS]`,
    '',
    summary,
    '',
    'Flags:',
    ...flags.map(flag => describeFlag(flag, listener)),
    '',
    'Examples:',
    ...examples.map(example => `  ${example}`),
  ].join('\n');
}

/** The column in which the description of a flag starts. */
const FLAG_WIDTH = 30;

function describeFlag(name: FlagName, listener: ListenerName = 'public'): string {
  const flag: { value?: string; default?: string; help: string } = FLAGS[name];
  const left = `  --${name}${flag.value === undefined ? '' : ` ${flag.value}`}`;
  const defaultText = flag.default === undefined ? '' : ` (default: ${flag.default})`;
  const variable = name === 'url' ? URL_VARIABLES[listener] : variableOf(name);
  return `${left.padEnd(FLAG_WIDTH)}${flag.help}${defaultText} [${variable}]`;
}
