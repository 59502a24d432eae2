// Reads bodies in threads of their own, so that a large one keeps no query waiting. A body that takes more memory or time
// to read than a thread has ends that thread and nothing else.
import { Worker } from 'node:worker_threads';
import { DendroError, type ErrorCode } from '../domain/errors.ts';
import type { BatchBody, ParsedBody } from './parse-body.ts';
import { tooManyValues } from './value-count.ts';

/** Where bodies are read: in threads, or right here. */
export interface BodyParser {
  /** Rejects with DendroError where the body is not what it says it is. */
  parse(body: BatchBody): Promise<ParsedBody>;
  close(): Promise<void>;
}

export type WorkerResult =
  | { readonly read: ParsedBody }
  | { readonly fault: { readonly code: ErrorCode; readonly message: string } }
  | { readonly defect: Error };

interface Job {
  readonly body: BatchBody;
  readonly resolve: (read: ParsedBody) => void;
  readonly reject: (error: unknown) => void;
}

/** No body should come near it (value-count.ts): V8 does not always end just the thread that reaches its limit. */
const MAX_HEAP_MIB = 512;
/** Half a million tiny records take ten seconds on a busy machine; millions of broken lines took minutes, and all others waited. */
const MAX_READING_MS = 40_000;

export class BodyParserPool implements BodyParser {
  readonly #most: number;
  readonly #idle: Worker[] = [];
  readonly #busy = new Map<Worker, { readonly job: Job; readonly limit: NodeJS.Timeout }>();
  readonly #waiting: Job[] = [];
  #closed = false;

  /** Threads are started when they are needed. */
  constructor(most: number) {
    this.#most = most;
  }

  parse(body: BatchBody): Promise<ParsedBody> {
    if (this.#closed) return Promise.reject(new DendroError('unavailable', 'stopping'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ body: { ...body, bytes: ownBytes(body.bytes) }, resolve, reject });
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const job of this.#waiting.splice(0)) job.reject(new DendroError('unavailable', 'stopping'));
    await Promise.all([...this.#idle, ...this.#busy.keys()].map(thread => thread.terminate()));
  }

  /** One body at a time for each thread: what waits is still here if a thread ends. */
  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#idle.pop() ?? (this.#busy.size < this.#most ? this.#start() : undefined);
      const job = thread === undefined ? undefined : this.#waiting.shift();
      if (thread === undefined || job === undefined) return;
      const limit = setTimeout(() => {
        this.#bury(thread, tooManyValues());
        void thread.terminate();
      }, MAX_READING_MS);
      this.#busy.set(thread, { job, limit: limit.unref() });
      thread.postMessage(job.body, [job.body.bytes.buffer as ArrayBuffer]);
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL('./body-parser-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    });
    thread.unref();
    thread.on('message', (answer: WorkerResult) => {
      const job = this.#free(thread);
      if (job === undefined) return; // it was given up, and is about to end
      this.#idle.push(thread);
      settle(job, answer);
      if (!this.#closed) this.#dispatch();
    });
    thread.on('error', error => this.#bury(thread, error));
    thread.on('exit', () => this.#bury(thread, new DendroError('unavailable', 'stopping')));
    return thread;
  }

  #bury(thread: Worker, error: unknown): void {
    const job = this.#free(thread);
    const place = this.#idle.indexOf(thread);
    if (place !== -1) this.#idle.splice(place, 1);
    job?.reject(isOutOfMemory(error) ? tooManyValues() : error);
    if (!this.#closed) this.#dispatch();
  }

  #free(thread: Worker): Job | undefined {
    const { job, limit } = this.#busy.get(thread) ?? {};
    clearTimeout(limit);
    this.#busy.delete(thread);
    return job;
  }
}

function settle(job: Job, answer: WorkerResult): void {
  if ('read' in answer) job.resolve(answer.read);
  else if ('fault' in answer) job.reject(new DendroError(answer.fault.code, answer.fault.message));
  else job.reject(answer.defect);
}

function isOutOfMemory(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** A small Buffer lies in memory that it shares with others, which must not move to a thread with it. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}
