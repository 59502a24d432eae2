// A temporary folder and the processes of one run. Whatever way the run ends, they end with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const root = join(import.meta.dirname, '..', '..');
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 30_000;

export function openWorkplace() {
  const folder = mkdtempSync(join(tmpdir(), 'dendro-bench-'));
  const children = new Set();
  const clear = () => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => {
      clear();
      process.exit(1);
    });

  return {
    folder,

    /** Starts a process and waits for the line that says it is ready; answers the first group of `ready` in it. */
    async start(command, ready, env = {}, onLine = () => {}) {
      const [program, ...args] = command;
      const child = spawn(program, args, {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      });
      children.add(child);
      const ended = new Promise(resolve => child.once('exit', resolve)).then(() => children.delete(child));
      const word = await waitForLine(child, ready, command, onLine);
      return {
        word,
        child,
        async stop() {
          child.kill('SIGTERM');
          await ended;
        },
      };
    },

    /** Starts a server that says nothing and waits until `ping` succeeds. */
    async startQuiet(command, ping, stopSignal = 'SIGTERM') {
      const [program, ...args] = command;
      const child = spawn(program, args, { cwd: folder, stdio: 'ignore' });
      children.add(child);
      let isOver = false;
      const ended = new Promise(resolve => child.once('exit', resolve).once('error', resolve)).then(() => {
        isOver = true;
        children.delete(child);
      });
      const giveUpAt = performance.now() + START_LIMIT_MS;
      for (;;) {
        if (isOver || performance.now() > giveUpAt) throw new Error(`${program} does not start`);
        const isThere = await ping().then(
          () => true,
          () => false,
        );
        if (isThere) break;
        await sleep(100);
      }
      return {
        pid: child.pid,
        async stop() {
          child.kill(stopSignal);
          const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
          await ended;
          clearTimeout(limit);
        },
      };
    },

    /** Runs a process to its end; answers what it printed, and tells of it meanwhile. */
    async read(command, { env = {}, stdin = 'ignore', signal, onOutput = () => {} } = {}) {
      const [program, ...args] = command;
      const child = spawn(program, args, {
        env: { ...process.env, ...env },
        stdio: [stdin, 'pipe', 'pipe'],
        signal,
      });
      children.add(child);
      let output = '';
      let errors = '';
      child.stdout.on('data', data => {
        output += data;
        onOutput(String(data));
      });
      child.stderr.on('data', data => {
        errors = (errors + data).slice(-2000);
      });
      const [code] = await once(child, 'close').finally(() => children.delete(child));
      if (code !== 0) throw new Error(`${program} ${args[0]} ended with code ${code}: ${errors}`);
      return output;
    },

    /** The same for one of our own processes: answers what it printed behind `result: `. */
    async run(command, env = {}) {
      const result = /^result: (.*)$/m.exec(await this.read(command, { env }))?.[1];
      return result === undefined ? undefined : JSON.parse(result);
    },

    /** A command as another machine could type it: without the paths of this one. */
    show(command) {
      const text = command.map(word => (/[\s?&]/.test(word) ? `'${word}'` : word)).join(' ');
      return text
        .replaceAll(process.execPath, 'node')
        .replaceAll(folder, '<temporary folder>')
        .replaceAll(`${root}/`, '');
    },

    clear,
  };
}

function waitForLine(child, ready, command, onLine) {
  return new Promise((resolve, reject) => {
    let errors = '';
    const fail = reason => reject(new Error(`${command.join(' ')}: ${reason}\n${errors}`));
    const limit = setTimeout(() => fail('not ready in time'), START_LIMIT_MS);
    child.stderr.on('data', data => {
      errors = (errors + data).slice(-4000);
    });
    child.once('error', error => fail(error.message));
    child.once('exit', code => fail(`ended with code ${code}`));
    createInterface({ input: child.stdout }).on('line', line => {
      onLine(line);
      const found = ready.exec(line);
      if (found === null) return;
      clearTimeout(limit);
      resolve(found[1]);
    });
  });
}
