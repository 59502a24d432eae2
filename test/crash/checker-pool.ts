// Processes that check crash states, many states each.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { CheckRequest, CheckResult } from './check-state.ts';

const CHILD = join(import.meta.dirname, 'child.mjs');
/** A start that takes longer has stopped making progress. */
const STUCK_MS = 60_000;

export class CheckerPool {
  readonly size: number;
  readonly #idle: ChildProcess[] = [];
  readonly #waiting: ((child: ChildProcess) => void)[] = [];

  private constructor(children: readonly ChildProcess[]) {
    this.size = children.length;
    this.#idle.push(...children);
  }

  static async start(size: number): Promise<CheckerPool> {
    return new CheckerPool(await Promise.all(Array.from({ length: size }, startChild)));
  }

  /** A state that crashes the process, or on which it stops making progress, is an error too. */
  async check(request: CheckRequest): Promise<CheckResult> {
    const child =
      this.#idle.pop() ?? (await new Promise<ChildProcess>(resolve => this.#waiting.push(resolve)));
    const result = await ask(child, request);
    if (typeof result !== 'string') {
      this.#release(child);
      return result;
    }
    child.kill('SIGKILL');
    this.#release(await startChild());
    return { error: result, isClear: false };
  }

  close(): void {
    for (const child of this.#idle) child.kill('SIGKILL');
  }

  #release(child: ChildProcess): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(child);
    else next(child);
  }
}

async function startChild(): Promise<ChildProcess> {
  const child = fork(CHILD, ['check'], { serialization: 'json' });
  await once(child, 'message');
  return child;
}

async function ask(child: ChildProcess, request: CheckRequest): Promise<CheckResult | string> {
  const stop = new AbortController();
  const limit = setTimeout(() => stop.abort(), STUCK_MS);
  const { signal } = stop;
  try {
    const answered = once(child, 'message', { signal }).then(([result]) => result as CheckResult);
    const exited = once(child, 'exit', { signal }).then(
      ([code, name]) => `the process that opened the directory ended with ${code ?? name}`,
    );
    child.send(request);
    const result = await Promise.race([answered, exited]);
    answered.catch(() => {});
    exited.catch(() => {});
    return result;
  } catch {
    return `the start did not finish within ${STUCK_MS / 1000} s`;
  } finally {
    clearTimeout(limit);
    stop.abort();
  }
}
