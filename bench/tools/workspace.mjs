// The temporary directory and the child processes of one run. When the run ends, also on a signal, the processes are killed and
// the directory is removed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** @import { ChildProcess } from 'node:child_process' */

const root = join(import.meta.dirname, '..', '..');
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 30_000;

export function openWorkspace() {
  const directory = mkdtempSync(join(tmpdir(), 'dendro-bench-'));
  /** @type {Set<ChildProcess>} */
  const children = new Set();
  const clear = () => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => {
      clear();
      process.exit(1);
    });

  return {
    directory,

    /**
     * Starts a process and waits for the output line that matches `ready`. Returns the first group of the match as
     * `readyText`.
     * @param {string[]} command @param {RegExp} ready
     * @param {Record<string, string>} env @param {(line: string) => void} onLine
     */
    async start(command, ready, env = {}, onLine = () => {}) {
      const [program, ...args] = command;
      const child = spawn(program, args, {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      });
      children.add(child);
      const ended = new Promise(resolve => child.once('exit', resolve)).then(() => children.delete(child));
      const readyText = await waitForLine(child, ready, command, onLine);
      return {
        readyText,
        child,
        async stop() {
          child.kill('SIGTERM');
          await ended;
        },
      };
    },

    /**
     * Starts a server that prints no ready line, and waits until `ping` succeeds.
     * @param {string[]} command @param {() => Promise<unknown>} ping @param {NodeJS.Signals} stopSignal
     */
    async startUntilPing(command, ping, stopSignal = 'SIGTERM') {
      const [program, ...args] = command;
      const child = spawn(program, args, { cwd: directory, stdio: 'ignore' });
      children.add(child);
      let hasEnded = false;
      const ended = new Promise(resolve => child.once('exit', resolve).once('error', resolve)).then(() => {
        hasEnded = true;
        children.delete(child);
      });
      const giveUpAt = performance.now() + START_LIMIT_MS;
      for (;;) {
        if (hasEnded) throw new Error(`${program} ended while it was starting`);
        if (performance.now() > giveUpAt)
          throw new Error(`${program} was not ready within ${START_LIMIT_MS / 1000} s`);
        const isReady = await ping().then(
          () => true,
          () => false,
        );
        if (isReady) break;
        await sleep(100);
      }
      return {
        async stop() {
          child.kill(stopSignal);
          const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
          await ended;
          clearTimeout(limit);
        },
      };
    },

    /**
     * Runs a process until it ends and returns its output. Fails unless the exit code is 0.
     * @param {string[]} command
     * @param {{
     *   env?: Record<string, string>, stdin?: number | 'ignore', signal?: AbortSignal, onOutput?: (text: string) => void
     * }} options
     */
    async readOutput(command, { env = {}, stdin = 'ignore', signal, onOutput = () => {} } = {}) {
      const [program, ...args] = command;
      const child = spawn(program, args, {
        env: { ...process.env, ...env },
        stdio: [stdin, 'pipe', 'pipe'],
        ...(signal && { signal }),
      });
      children.add(child);
      let output = '';
      let errors = '';
      child.stdout?.on('data', data => {
        output += data;
        onOutput(String(data));
      });
      child.stderr?.on('data', data => {
        errors = (errors + data).slice(-2000);
      });
      const [code] = await once(child, 'close').finally(() => children.delete(child));
      if (code !== 0) throw new Error(`${program} ${args[0]} ended with exit code ${code}: ${errors}`);
      return output;
    },

    /**
     * Runs a process of the benchmark and returns the JSON value on its output line `result: …`.
     * @param {string[]} command @param {Record<string, string>} env
     */
    async readResult(command, env = {}) {
      const output = await this.readOutput(command, { env });
      const result = /^result: (.*)$/m.exec(output)?.[1];
      if (result === undefined) throw new Error(`${this.describe(command)} printed no result`);
      return JSON.parse(result);
    },

    /**
     * A command line without the paths of this machine.
     * @param {string[]} command
     */
    describe(command) {
      const text = command.map(word => (/[\s?&]/.test(word) ? `'${word}'` : word)).join(' ');
      return text
        .replaceAll(process.execPath, 'node')
        .replaceAll(directory, '<temporary directory>')
        .replaceAll(`${root}/`, '');
    },

    clear,
  };
}

/**
 * @param {ChildProcess} child @param {RegExp} ready @param {string[]} command @param {(line: string) => void} onLine
 * @returns {Promise<string>}
 */
function waitForLine(child, ready, command, onLine) {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('the process has no output to read');
  return new Promise((resolve, reject) => {
    let errors = '';
    /** @param {string} reason */
    const fail = reason => reject(new Error(`${command.join(' ')}: ${reason}\n${errors}`));
    const limit = setTimeout(() => fail(`not ready within ${START_LIMIT_MS / 1000} s`), START_LIMIT_MS);
    stderr.on('data', data => {
      errors = (errors + data).slice(-4000);
    });
    child.once('error', error => fail(error.message));
    child.once('exit', code => fail(`ended with exit code ${code}`));
    createInterface({ input: stdout }).on('line', line => {
      onLine(line);
      const found = ready.exec(line);
      if (found === null) return;
      clearTimeout(limit);
      resolve(found[1]);
    });
  });
}

/**
 * Like Promise.all, but waits for every promise even when one fails: work that continues in the background would disturb
 * the next measurement.
 * @param {Iterable<unknown>} promises
 */
export async function waitForAll(promises) {
  for (const result of await Promise.allSettled(promises))
    if (result.status === 'rejected') throw result.reason;
}
