// A temporary folder and the processes of one run. Whatever way the run ends, they end with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');
const START_LIMIT_MS = 60_000;

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

    /** Runs a process to its end; answers what it printed behind `result: `. */
    async run(command, env = {}) {
      const [program, ...args] = command;
      const child = spawn(program, args, {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      children.add(child);
      let output = '';
      child.stdout.on('data', data => {
        output += data;
      });
      const [code] = await once(child, 'close');
      children.delete(child);
      if (code !== 0) throw new Error(`${command.join(' ')} ended with code ${code}`);
      const result = /^result: (.*)$/m.exec(output)?.[1];
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
