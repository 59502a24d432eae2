import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { FLAGS, type FlagName, isSwitch, variableOf } from '../../src/config.ts';
import { createTempDirectory, onlyLine, runDendro } from '../support/process.ts';

describe('the command line', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  beforeAll(() => {
    directory = createTempDirectory();
  });
  afterAll(() => directory.remove());

  const run = (...args: string[]) => runDendro(args, { cwd: directory.path });

  test('dendro --version prints the version', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
    expect(await run('--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('dendro --help and dendro without arguments list the commands', async () => {
    const { code, stdout, stderr } = await run('--help');
    expect(code).toBe(0);
    expect(stderr).toBe('');
    for (const { name, summary } of commands)
      expect(stdout).toMatch(new RegExp(`^  ${name} +${summary.slice(0, 20)}`, 'm'));
    expect(await run()).toEqual({ code, stdout, stderr });
  });

  test.each(commands.map(command => [command.name, command] as const))(
    'dendro %s --help lists every flag with its variable and its default',
    async (name, { flags, summary, examples }) => {
      const { code, stdout, stderr } = await run(name, '--help');
      expect(code).toBe(0);
      expect(stderr).toBe('');
      expect(stdout).toContain(summary);
      for (const example of examples) expect(stdout).toContain(example);
      for (const flag of flags) {
        const line = stdout.split('\n').find(text => text.startsWith(`  --${flag} `)) ?? '';
        const { help, ...rest }: { help: string; default?: string } = FLAGS[flag as FlagName];
        expect(line).toContain(help);
        if (!isSwitch(flag)) expect(line).toContain(`[${variableOf(flag)}]`);
        if (rest.default !== undefined) expect(line).toContain(`(default: ${rest.default})`);
      }
    },
  );

  test('--help takes precedence over invalid values', async () => {
    expect((await run('serve', '--port', 'x', '--help')).code).toBe(0);
  });

  test.each([
    ['an unknown command', ['dance'], 'dance'],
    ['an unknown flag', ['serve', '--dance'], '--dance'],
    ['a flag of another command', ['serve', '--json'], '--json'],
    ['a flag without its value', ['serve', '--port'], '--port'],
    ['a value that starts with dashes', ['serve', '--data', '--port'], '--data'],
    ['a flag given twice', ['serve', '--port', '1', '--port', '2'], '--port'],
    ['an unexpected argument', ['serve', 'fast'], 'fast'],
    ['an unexpected argument', ['check', 'fast'], 'fast'],
    ['no endpoint', ['query'], 'endpoint'],
    ['two endpoints', ['query', 'logs.all', 'usage.api-counts'], 'endpoint'],
    ['a parameter that is not NAME=VALUE', ['query', 'logs.all', '--param', 'project'], '--param'],
    ['no file', ['ingest', '--source', 'edge'], 'file'],
    ['an unknown source', ['ingest', 'file.ndjson', '--source', 'dance'], 'dance'],
  ])('%s (dendro %j): one line that names it, exit 2', async (_, args, named) => {
    const outcome = await run(...args);
    expect(outcome.code).toBe(2);
    expect(outcome.stdout).toBe('');
    expect(onlyLine(outcome)).toContain(named);
  });

  test.each([
    ['port', '-1'],
    ['port', '65536'],
    ['port', '80x'],
    ['port', '1.5'],
    ['port', ''],
    ['internal-port', 'x'],
    ['host', ''],
    ['data', ''],
    ['store', 'sqlite'],
    ['retention-days', '0'],
    ['retention-days', 'x'],
    ['query-timeout', '0'],
    ['query-concurrency', '0'],
    ['query-queue', 'x'],
    ['memory-limit', '500'],
    ['memory-limit', "1GB'; drop"],
  ])('--%s %j: one line that names the flag, exit 2', async (flag, value) => {
    // `check` reads the configuration of `serve`, and exits by itself if a value is accepted by mistake.
    const outcome = await run('check', `--${flag}=${value}`);
    expect(outcome.code).toBe(2);
    expect(onlyLine(outcome)).toContain(`--${flag}`);
    expect(outcome.stdout).toBe('');
  });

  test('a command with an invalid flag does not create the data directory', async () => {
    await run('serve', '--data', 'rejected', '--port', 'x');
    expect(existsSync(join(directory.path, 'rejected'))).toBe(false);
  });
});
