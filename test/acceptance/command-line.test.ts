import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { FLAGS, type FlagName, variableOf } from '../../src/config.ts';
import { DENDRO_COMMAND, onlyLine, runDendro } from '../support/process.ts';

describe('the command line', () => {
  const run = (...args: string[]) => runDendro(args);

  test.each(['--version', '-v', 'version'])('dendro %s prints the version', async argument => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
    expect(await run(argument)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('dendro --help, -h, help and dendro without arguments list the commands', async () => {
    const { code, stdout, stderr } = await run('--help');
    expect(code).toBe(0);
    expect(stderr).toBe('');
    for (const { name, summary } of commands)
      expect(stdout).toMatch(new RegExp(`^  ${name} +${summary.slice(0, 20)}`, 'm'));
    for (const args of [[], ['-h'], ['help']]) expect(await run(...args)).toEqual({ code, stdout, stderr });
  });

  test('dendro help COMMAND and dendro COMMAND -h print the same as dendro COMMAND --help', async () => {
    const help = await run('ingest', '--help');
    expect(help.stdout).toContain('[DENDRO_INTERNAL_URL]');
    expect(await run('help', 'ingest')).toEqual(help);
    expect(await run('ingest', '-h')).toEqual(help);
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
        if (flag !== 'url') expect(line).toContain(`[${variableOf(flag)}]`);
        if (rest.default !== undefined) expect(line).toContain(`(default: ${rest.default})`);
      }
    },
  );

  test('--help takes precedence over invalid values', async () => {
    expect((await run('serve', '--port', 'x', '--help')).code).toBe(0);
  });

  test('a command whose output nobody reads, as before head, ends without a message and with exit code 0', async () => {
    const [program, bin] = DENDRO_COMMAND;
    const child = spawn(program, [bin, 'help']);
    child.stdout.destroy(); // before the command has started to write
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const [code] = await once(child, 'close');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  test('output that does not fit on the disk is reported in one line, with exit code 1', async () => {
    const command = ['sh', '-c', 'exec "$0" "$@" > /dev/full', ...DENDRO_COMMAND] as const;
    const outcome = await runDendro(['help'], { command });
    expect([outcome.code, onlyLine(outcome)]).toEqual([1, expect.stringContaining('ENOSPC')]);
  });
});
