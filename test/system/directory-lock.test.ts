import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockDirectory } from '../../src/system/directory-lock.ts';
import { PROCESS_API_KEY, startServer } from '../support/process.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = makeDataFolder();
  file = join(folder, 'dendro.pid');
});
afterEach(() => removeDataFolder(folder));

/** A process that is long gone had it. */
const NOBODY = '4194305 gone 1\n';

describe('a data directory is held by one server', () => {
  // Nobody answers there: a server starts all the same, and takes records in.
  const clickhouse = 'clickhouse://u:p@127.0.0.1:1/d';
  const env = { DENDRO_API_KEY: PROCESS_API_KEY };

  test.each([
    ['duckdb', clickhouse],
    [clickhouse, 'duckdb'],
    [clickhouse, clickhouse],
  ])('%s keeps out %s, with one line that says what to do', async (one, other) => {
    const start = (store: string) =>
      startServer(['--data', folder], { env: { ...env, DENDRO_STORE: store } });
    const server = await start(one);
    const second = start(other);
    try {
      const holder = `${folder} is in use by another process \\(PID ${server.pid}\\)`;
      await expect(second).rejects.toThrow(
        new RegExp(`^ended with 1: dendro: the data directory ${holder}; .*--url\n$`),
      );
    } finally {
      await second.then(
        ({ stop }) => stop(),
        () => {},
      );
      await server.stop();
    }
    expect(existsSync(file)).toBe(false);
  });

  test.each(['duckdb', clickhouse])('%s that was killed does not hold it', async store => {
    const killed = await startServer(['--data', folder], { env: { ...env, DENDRO_STORE: store } });
    killed.signal('SIGKILL');
    await killed.ended;
    expect(existsSync(file)).toBe(true);
    const next = await startServer(['--data', folder], { env: { ...env, DENDRO_STORE: store } });
    expect((await next.stop()).code).toBe(0);
  });
});

test('of processes that take over a dead lock at once, one gets it', async () => {
  const folders = Array.from({ length: 40 }, (_, i) => join(folder, String(i)));
  for (const each of folders) {
    mkdirSync(each);
    writeFileSync(join(each, 'dendro.pid'), NOBODY);
  }
  const script = join(import.meta.dirname, '../support/lock-process.mjs');
  const racers = Array.from({ length: 2 }, () => {
    const child = spawn(process.execPath, [script, ...folders], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return { child, next: async () => JSON.parse((await lines.next()).value ?? 'null') as unknown };
  });
  for (const { next } of racers) expect(await next()).toBe('ready');
  const start = Date.now() + 200;
  for (const { child } of racers) child.stdin.write(`${start}\n`);
  const got = await Promise.all(racers.map(({ next }) => next() as Promise<number[]>));
  await Promise.all(
    racers.map(async ({ child }) => {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    }),
  );
  expect(got.flat().sort((a, b) => a - b)).toEqual(folders.map((_, i) => i));
});

describe('who holds it', () => {
  const isRefused = () =>
    lockDirectory(folder).then(
      lock => lock.release(),
      (error: Error) => error.message,
    );

  test('is this process, until it lets go', async () => {
    const lock = await lockDirectory(folder);
    expect(await isRefused()).toContain(`(PID ${process.pid})`);
    lock.release();
    expect(await isRefused()).toBeUndefined();
  });

  test('is a process that runs, where nothing but its number is known', async () => {
    writeFileSync(file, `${process.ppid}\n`);
    expect(await isRefused()).toContain(`(PID ${process.ppid})`);
  });

  test.each(['', 'no number\n', NOBODY])('is nobody where the file says %j', async text => {
    writeFileSync(file, text);
    expect(await isRefused()).toBeUndefined();
  });

  test.runIf(process.platform === 'linux')('is not another process that has its number now', async () => {
    const lock = await lockDirectory(folder);
    const [, boot = '', start = ''] = readFileSync(file, 'utf8').trim().split(' ');
    lock.release();
    for (const owner of [
      `${process.ppid} ${boot} ${start}`, // began at another moment
      `${process.pid} ${boot} 1`,
      `${process.pid} another-boot ${start}`,
    ]) {
      writeFileSync(file, `${owner}\n`);
      expect([owner, await isRefused()]).toEqual([owner, undefined]);
    }
    writeFileSync(file, `${process.pid} ${boot} ${start}\n`);
    expect(await isRefused()).toContain(`(PID ${process.pid})`);
  });

  test.runIf(process.platform === 'linux')(
    'is not a process that ended, though its parent has not noticed',
    async () => {
      const parent = spawn('sh', ['-c', 'sleep 0.01 & echo $!; exec sleep 20']);
      const [pid] = await once(parent.stdout, 'data');
      const stat = () => readFileSync(`/proc/${Number(pid)}/stat`, 'utf8');
      try {
        await expect.poll(stat).toMatch(/\) Z /);
        const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
        writeFileSync(file, `${Number(pid)} ${boot} ${stat().split(' ')[21]}\n`);
        expect(await isRefused()).toBeUndefined();
      } finally {
        parent.kill();
      }
    },
  );
});
