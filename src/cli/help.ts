// The help texts of the program and of each command.
import { FLAGS, type FlagName, type ListenerName, URL_VARIABLES, variableOf } from '../config.ts';
import { type Command, commands } from './commands.ts';

const NAME_WIDTH = Math.max(...commands.map(({ name }) => name.length)) + 2;
/** The column in which the description of a flag starts. */
const FLAG_WIDTH = 30;

export function describeProgram(): string {
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(NAME_WIDTH)}${summary}`);
  return [
    'Dendro: saved log queries, served as HTTP endpoints.',
    '',
    'Usage: dendro COMMAND [FLAGS]',
    '',
    ...lines,
    '',
    'dendro help COMMAND lists the flags of a command, each with its environment variable (also: dendro COMMAND --help or -h).',
    'dendro version prints the version (also: --version or -v).',
  ].join('\n');
}

export function describeCommand({ name, usage, summary, flags, examples, listener }: Command): string {
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

function describeFlag(name: FlagName, listener: ListenerName = 'public'): string {
  const flag: { value?: string; default?: string; help: string } = FLAGS[name];
  const left = `  --${name}${flag.value === undefined ? '' : ` ${flag.value}`}`;
  const defaultText = flag.default === undefined ? '' : ` (default: ${flag.default})`;
  const variable = name === 'url' ? URL_VARIABLES[listener] : variableOf(name);
  return `${left.padEnd(FLAG_WIDTH)}${flag.help}${defaultText} [${variable}]`;
}
