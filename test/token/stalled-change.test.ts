import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { changeTokenFile, readTokenFile } from '../../src/token/token-file.ts';
import { useDirectory } from '../support/hooks.ts';
import { runDendro } from '../support/process.ts';
import { storedToken } from '../support/tokens.ts';

describe.runIf(process.platform === 'linux')('a token command that stalls while it changes the file', () => {
  const directory = useDirectory();
  const file = join(directory, 'tokens.json');
  const lock = `${file}.lock`;
  let stalled: ChildProcess;
  beforeEach(async () => {
    await changeTokenFile(file, () => [storedToken('leaked', 'leaked'), storedToken('other', 'other')]);
    const script = join(import.meta.dirname, '../support/stalled-change.mjs');
    stalled = spawn(process.execPath, [script, file, 'created'], { stdio: ['ignore', 'ignore', 'inherit'] });
    const stat = () => readFileSync(`/proc/${stalled.pid}/stat`, 'utf8');
    await expect.poll(stat).toMatch(/\) T /);
    const longAgo = new Date(Date.now() - 60_000);
    utimesSync(lock, longAgo, longAgo);
  });
  afterEach(() => stalled.kill('SIGKILL'));

  const names = () => readTokenFile(file).map(({ name }) => name);
  const revoke = () => runDendro(['token', 'revoke', 'leaked', '--tokens', file]);
  const resume = async () => {
    stalled.kill('SIGCONT');
    const [code] = await once(stalled, 'exit');
    expect(code).toBe(0);
  };

  test('makes a revoke fail, which says that the token is still valid and names the process, instead of undoing it later', async () => {
    const { code, stderr } = await revoke();
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `dendro: the token leaked is still valid: ${lock}: another process holds this lock (PID ${stalled.pid}); retry when it has finished, or stop it\n`,
    });
    await resume();
    expect((await revoke()).code).toBe(0);
    expect(names()).toEqual(['other', 'created']);
  });

  test('starts again with the new tokens if its lock was taken, such as by another container', async () => {
    writeFileSync(lock, '4194305 another-boot 1\n'); // there, the PID means another process
    expect(await revoke()).toMatchObject({ code: 0, stderr: '' });
    expect(names()).toEqual(['other']);
    await resume();
    expect(names()).toEqual(['other', 'created']);
    expect(readdirSync(directory)).toEqual(['tokens.json']);
  });

  test('blocks no later command if it is killed', async () => {
    stalled.kill('SIGKILL');
    await once(stalled, 'exit');
    expect(existsSync(lock)).toBe(true);
    expect(await revoke()).toMatchObject({ code: 0, stderr: '' });
    expect(names()).toEqual(['other']);
    expect(existsSync(lock)).toBe(false);
  });
});
