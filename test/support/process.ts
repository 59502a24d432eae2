// Runs the built program: in this process, which is fast, or as users do, bin/dendro in a process of its own.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as Program from '../../src/cli/program.ts';

/** The built program and not its sources, because its worker threads run built files. */
const PROGRAM = join(import.meta.dirname, '../../dist/cli/program.js');

/** The program and its first argument. */
export const DENDRO_COMMAND = [process.execPath, join(import.meta.dirname, '../../bin/dendro')] as const;

export const PROCESS_API_KEY = 'a-key-of-the-acceptance-tests';

/** Servers that run at the same time cannot share ports. */
const FREE_PORTS = { DENDRO_PORT: '0', DENDRO_INTERNAL_PORT: '0' };

export interface RunOptions {
  /** Environment variables of this run; those of the test process are not inherited. Default: free ports. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The program and its first arguments; default: bin/dendro of this checkout. */
  readonly command?: readonly [string, ...string[]];
  /** The content of standard input. */
  readonly input?: string | Buffer;
  /** Whether the streams are a terminal. Only for a run in this process. */
  readonly isTTY?: boolean;
  /** Kills the process with SIGKILL after this time. */
  readonly killAfterMs?: number;
  /** Runs while the process runs. The process then gets the signal that it returns. */
  readonly signalAfter?: () => Promise<NodeJS.Signals>;
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServerProcess {
  readonly pid: number;
  readonly url: string;
  readonly internalUrl: string;
  isRunning(): boolean;
  stdout(): string;
  stderr(): string;
  /** Resolves when standard error contains this text. */
  untilError(text: string): Promise<void>;
  /** Closes the reading ends of its standard output and standard error, as a log collector that has crashed. */
  closeOutput(): void;
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<Outcome>;
  /** Sends SIGTERM if the process is still running, and waits for its end. */
  stop(): Promise<Outcome>;
}

/** Runs a command in this process and waits for its end. Options that need a process of its own start one. */
export async function runDendro(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { cwd, command, killAfterMs, signalAfter } = options;
  const needsProcess = [cwd, command, killAfterMs, signalAfter].some(option => option !== undefined);
  return needsProcess ? spawnDendro(args, options) : runHere(args, options).ended;
}

interface RunHere {
  readonly output: { stdout: string; stderr: string };
  readonly signals: EventEmitter;
  readonly ended: Promise<Outcome>;
}

function runHere(args: readonly string[], { env = {}, input = '', isTTY = false }: RunOptions): RunHere {
  const output = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof output) => {
    const write = (text: Buffer, _: string, done: () => void) => {
      output[name] += text;
      done();
    };
    return Object.assign(new Writable({ write }), { isTTY });
  };
  const signals = new EventEmitter();
  const io = {
    env: { ...FREE_PORTS, ...env },
    stdin: Object.assign(Readable.from(input.length === 0 ? [] : [Buffer.from(input)]), { isTTY }),
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    signals,
    exit: () => {},
    kill: () => {},
  };
  const ended = (import(PROGRAM) as Promise<typeof Program>).then(async ({ run }) => {
    const code = await run(args, io);
    return { ...output, code };
  });
  return { output, signals, ended };
}

export type ServerHere = Omit<ServerProcess, 'untilError' | 'closeOutput' | 'isRunning'>;

/** Starts `dendro serve` in this process, and waits until it is ready. */
export async function startServerHere(
  args: readonly string[],
  options: RunOptions = {},
): Promise<ServerHere> {
  const { output, signals, ended } = runHere(['serve', ...args], options);
  const urlOf = (name: string) => new RegExp(`^${name}: listening on (\\S+)$`, 'm').exec(output.stdout)?.[1];
  let outcome: Outcome | undefined;
  void ended.then(result => {
    outcome = result;
  });
  while (urlOf('internal') === undefined) {
    if (outcome !== undefined) throw new Error(`exited with ${outcome.code}: ${outcome.stderr}`);
    await sleep(5);
  }
  return {
    pid: process.pid,
    url: urlOf('public') ?? '',
    internalUrl: urlOf('internal') ?? '',
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    signal: name => void signals.emit(name, name),
    ended,
    stop() {
      signals.emit('SIGTERM', 'SIGTERM');
      return ended;
    },
  };
}

/** Runs a command in a process of its own and waits for its end. */
export async function spawnDendro(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = start(args, options);
  child.stdin.on('error', () => {}); // a command that fails may exit before it has read its input
  child.stdin.end(options.input ?? '');
  const { killAfterMs } = options;
  const kill = killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  const { ended } = collect(child);
  if (options.signalAfter !== undefined) child.kill(await options.signalAfter());
  return ended.finally(() => clearTimeout(kill));
}

/** Starts `dendro serve`, on free ports unless `args` contain --port, and waits until it is ready. */
export async function startServer(args: readonly string[], options: RunOptions = {}): Promise<ServerProcess> {
  const ports = args.includes('--port') ? [] : ['--port', '0', '--internal-port', '0'];
  const child = start(['serve', ...ports, ...args], options);
  const { output, ended, until } = collect(child);
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  const urlOf = (name: string) => new RegExp(`^${name}: listening on (\\S+)$`, 'm').exec(output.stdout)?.[1];
  await until(() => urlOf('public') !== undefined && urlOf('internal') !== undefined);
  return {
    pid: child.pid ?? 0,
    url: urlOf('public') ?? '',
    internalUrl: urlOf('internal') ?? '',
    isRunning: () => !hasEnded,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    untilError: text => until(() => output.stderr.includes(text)),
    closeOutput() {
      child.stdout.destroy();
      child.stderr.destroy();
    },
    signal: name => void child.kill(name),
    ended,
    stop() {
      if (!hasEnded) child.kill('SIGTERM');
      return ended;
    },
  };
}

function start(
  args: readonly string[],
  { env = {}, cwd = tmpdir(), command = DENDRO_COMMAND }: RunOptions,
): ChildProcessWithoutNullStreams {
  const { PATH, HOME, TMPDIR } = process.env;
  const [program, ...firstArgs] = command;
  return spawn(program, [...firstArgs, ...args], { cwd, env: { PATH, HOME, TMPDIR, ...FREE_PORTS, ...env } });
}

function collect(child: ChildProcessWithoutNullStreams) {
  const output = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
      for (const watcher of watchers) watcher();
    });
  const ended = once(child, 'close').then(([code]): Outcome => ({ ...output, code: code as number | null }));
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const watcher = () => {
        if (!condition()) return;
        watchers.delete(watcher);
        resolve();
      };
      watchers.add(watcher);
      watcher();
      void ended.then(({ code, stderr }) => reject(new Error(`exited with ${code}: ${stderr}`)));
    });
  return { output, ended, until };
}

/** Returns the only line on standard error of a failed command; throws if there are more lines, such as a stack trace. */
export function onlyLine({ stderr }: Outcome): string {
  const lines = stderr.split('\n');
  if (lines.length !== 2 || lines[1] !== '' || !stderr.startsWith('dendro: '))
    throw new Error(`standard error is not one line that starts with "dendro: ":\n${stderr}`);
  return lines[0] ?? '';
}

/** Creates a temporary directory. */
export function createTempDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'dendro-acceptance-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Returns a port that was free a moment ago, below those that the system gives to others meanwhile. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
