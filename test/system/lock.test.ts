import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockDirectory, withFileLock } from '../../src/system/lock.ts';
import { readTokenFile } from '../../src/token/token-file.ts';
import {
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  spawnDendro,
  startServer,
  startServerHere,
} from '../support/process.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';

let directory: string;
let pidFile: string;
beforeEach(() => {
  directory = createDataDirectory();
  pidFile = join(directory, 'dendro.pid');
});
afterEach(() => removeDataDirectory(directory));

/** The PID file of a process that ended long ago. */
const ENDED_OWNER = '4194305 gone 1\n';

describe('the lock of a data directory, across servers', () => {
  // Nothing listens there. The server starts anyway and accepts records.
  const clickhouse = 'clickhouse://u:p@127.0.0.1:1/d';
  const env = { DENDRO_API_KEY: PROCESS_API_KEY };

  test('a server blocks one with another store until it is killed', async () => {
    const server = await startServer(['--data', directory], { env: { ...env, DENDRO_STORE: clickhouse } });
    const second = await runDendro(['serve', '--data', directory], { env });
    expect(second.code).toBe(1);
    expect(onlyLine(second)).toMatch(
      new RegExp(`${directory} is in use by another process \\(PID ${server.pid}\\); .*--url$`),
    );
    server.signal('SIGKILL');
    await server.ended;
    expect(existsSync(pidFile)).toBe(true);
    const next = await startServerHere(['--data', directory], { env });
    expect((await next.stop()).code).toBe(0);
    expect(existsSync(pidFile)).toBe(false);
  });
});

/** Two processes try to lock each directory at the same time. Expects that one gets it, and that the other names its owner. */
async function raceFor(directories: readonly string[]): Promise<void> {
  const script = join(import.meta.dirname, '../support/lock-process.mjs');
  const racers = Array.from({ length: 2 }, () => {
    const child = spawn(process.execPath, [script, ...directories], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return { child, next: async () => JSON.parse((await lines.next()).value ?? 'null') as unknown };
  });
  for (const { next } of racers) expect(await next()).toBe('ready');
  const start = Date.now() + 200;
  for (const { child } of racers) child.stdin.write(`${start}\n`);
  const outcomes = await Promise.all(
    racers.map(({ next }) => next() as Promise<{ locked: number[]; errors: string[] }>),
  );
  await Promise.all(
    racers.map(async ({ child }) => {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    }),
  );
  const locked = outcomes.flatMap(outcome => outcome.locked);
  expect(locked.sort((a, b) => a - b)).toEqual(directories.map((_, i) => i));
  for (const { errors } of outcomes)
    for (const error of errors) expect(error).toContain('is in use by another process');
}

const names = Array.from({ length: 40 }, (_, i) => String(i));

test('of two processes that find a stale lock at the same time, one gets it', async () => {
  const directories = names.map(name => join(directory, name));
  for (const each of directories) {
    mkdirSync(each);
    writeFileSync(join(each, 'dendro.pid'), ENDED_OWNER);
  }
  await raceFor(directories);
});

test('of two processes that create the same data directory at the same time, one gets it', async () => {
  await raceFor(names.map(name => join(directory, name, 'a/b/c/d')));
});

describe('the owner of a data directory', () => {
  const tryLock = () =>
    lockDirectory(directory).then(
      lock => lock.release(),
      (error: Error) => error.message,
    );

  test('is this process until it releases the lock', async () => {
    const lock = await lockDirectory(directory);
    expect(await tryLock()).toContain(`(PID ${process.pid})`);
    lock.release();
    expect(await tryLock()).toBeUndefined();
  });

  test('is a running process if only its PID is known', async () => {
    writeFileSync(pidFile, `${process.ppid}\n`);
    expect(await tryLock()).toContain(`(PID ${process.ppid})`);
  });

  test.each(['', 'no number\n', ENDED_OWNER])('is nobody if the PID file contains %j', async text => {
    writeFileSync(pidFile, text);
    expect(await tryLock()).toBeUndefined();
  });

  test.runIf(process.platform === 'linux')('is not a process that only has the PID', async () => {
    const lock = await lockDirectory(directory);
    const [, boot = '', start = ''] = readFileSync(pidFile, 'utf8').trim().split(' ');
    lock.release();
    for (const owner of [
      `${process.ppid} ${boot} ${start}`, // another start time
      `${process.pid} ${boot} 1`,
      `${process.pid} another-boot ${start}`,
      `${process.pid} ${boot} ${start}`, // its own lock, which it could not remove
    ]) {
      writeFileSync(pidFile, `${owner}\n`);
      expect([owner, await tryLock()]).toEqual([owner, undefined]);
    }
  });

  test.runIf(process.platform === 'linux')('is not a zombie process', async () => {
    const parent = spawn('sh', ['-c', 'sleep 0.01 & echo $!; exec sleep 20']);
    const [pid] = await once(parent.stdout, 'data');
    const stat = () => readFileSync(`/proc/${Number(pid)}/stat`, 'utf8');
    try {
      await expect.poll(stat).toMatch(/\) Z /);
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      writeFileSync(pidFile, `${Number(pid)} ${boot} ${stat().split(' ')[21]}\n`);
      expect(await tryLock()).toBeUndefined();
    } finally {
      parent.kill();
    }
  });
});

describe('the lock of a file', () => {
  let file: string;
  let lock: string;
  beforeEach(() => {
    file = join(directory, 'tokens.json');
    lock = `${file}.lock`;
  });

  test('eight concurrent commands that find a stale lock create eight tokens, and a reader never sees an incomplete file', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `token-${i}`);
    writeFileSync(lock, ENDED_OWNER);
    let isRunning = true;
    const reading = (async () => {
      for (let previous = 0; isRunning; await sleep(1)) {
        const count = readTokenFile(file).length;
        expect(count).toBeGreaterThanOrEqual(previous);
        previous = count;
      }
    })();
    const outcomes = await Promise.all(
      names.map(name =>
        spawnDendro(['token', 'create', '--name', name, '--scope', 'query', '--tokens', file]),
      ),
    );
    isRunning = false;
    await reading;
    expect(outcomes.map(({ code, stderr }) => [code, stderr])).toEqual(
      names.map(() => [0, `stored in ${file}\n`]),
    );
    const tokens = readTokenFile(file);
    expect(tokens.map(({ name }) => name).sort()).toEqual(names);
    expect(existsSync(lock)).toBe(false);
  });

  test('is waited for if it is released within 5 s', async () => {
    writeFileSync(lock, `${process.ppid}\n`);
    let isFree = false;
    const changing = withFileLock(file, () => isFree);
    await sleep(100);
    isFree = true;
    rmSync(lock);
    expect(await changing).toBe(true);
  });

  test('names its owner in an error after 5 s, and stays', { timeout: 20_000 }, async () => {
    await withFileLock(file, async () => {
      const changing = withFileLock(file, () => {});
      await expect(changing).rejects.toThrow(`${lock}: another process holds this lock (PID ${process.pid})`);
      expect(existsSync(lock)).toBe(true);
    });
  });

  test('is released if the change throws', async () => {
    const changing = withFileLock(file, () => {
      throw new Error('no');
    });
    await expect(changing).rejects.toThrow('no');
    expect(existsSync(lock)).toBe(false);
  });

  test('cannot be created in a missing directory', async () => {
    const missing = join(directory, 'missing', 'tokens.json');
    await expect(withFileLock(missing, () => {})).rejects.toThrow(
      `cannot create the lock file ${missing}.lock`,
    );
  });
});
