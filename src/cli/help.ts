// The help texts of the program and of each command.
import { FLAGS, type FlagName, variableOf } from '../config.ts';
import { type Command, commands } from './commands.ts';

export function describeProgram(): string {
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(8)}${summary}`);
  return [
    'Dendro: saved log queries, served as HTTP endpoints.',
    '',
    'Usage: dendro COMMAND [FLAGS]',
    '',
    ...lines,
    '',
    'dendro COMMAND --help lists the flags of a command. Every flag also has an environment variable, DENDRO_<NAME>.',
    'dendro --version prints the version.',
  ].join('\n');
}

export function describeCommand({ name, usage, summary, flags, examples }: Command): string {
  return [
    `Usage: dendro ${name}${usage === '' ? '' : ` ${usage}`} [FLAGS]`,
    '',
    summary,
    '',
    'Flags:',
    ...flags.map(describeFlag),
    '',
    'Examples:',
    ...examples.map(example => `  ${example}`),
  ].join('\n');
}

function describeFlag(name: FlagName): string {
  const flag: { value?: string; default?: string; help: string } = FLAGS[name];
  const left = `  --${name}${flag.value === undefined ? '' : ` ${flag.value}`}`;
  const right = [flag.help, flag.default === undefined ? '' : ` (default: ${flag.default})`].join('');
  return `${left.padEnd(30)}${right}${name === 'help' ? '' : ` [${variableOf(name)}]`}`;
}
