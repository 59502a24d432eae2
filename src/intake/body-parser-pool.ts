// Parses bodies in a pool of worker threads, so that a large body does not delay queries. If a body exceeds the
// time limit, only its worker is terminated. Exceeding the memory limit can crash the process, so decode-body.ts limits the
// number of values first.
import { Worker } from 'node:worker_threads';
import { DendroError, type ErrorCode } from '../domain/errors.ts';
import type { BatchBody, ParsedBody } from './parse-body.ts';

/** Parses bodies in worker threads or, in tests, in the calling thread. */
export interface BodyParser {
  /** Rejects with DendroError if the body does not have the declared encoding or format. */
  parse(body: BatchBody): Promise<ParsedBody>;
  close(): Promise<void>;
}

/** The message from a worker. An error loses its class between threads, so a DendroError is sent as `bodyError`. */
export type WorkerResult =
  | { readonly parsed: ParsedBody }
  | { readonly bodyError: { readonly code: ErrorCode; readonly message: string } }
  | { readonly unexpectedError: Error };

interface Job {
  readonly body: BatchBody;
  readonly resolve: (parsed: ParsedBody) => void;
  readonly reject: (error: unknown) => void;
}

/** Last resort: V8 may crash the whole process here. The value limit in decode-body.ts keeps bodies far below it. */
const MAX_HEAP_MIB = 512;
/**
 * Half a million tiny records take 10 s on a busy machine. Without a time limit, millions of invalid lines blocked the pool
 * for minutes.
 */
const PARSE_TIMEOUT_MS = 40_000;

export class BodyParserPool implements BodyParser {
  readonly #maxWorkers: number;
  readonly #idle: Worker[] = [];
  readonly #busy = new Map<Worker, { readonly job: Job; readonly timeout: NodeJS.Timeout }>();
  readonly #queue: Job[] = [];
  #closed = false;

  /** Workers start on demand. */
  constructor(maxWorkers: number) {
    this.#maxWorkers = maxWorkers;
  }

  parse(body: BatchBody): Promise<ParsedBody> {
    if (this.#closed) return Promise.reject(shuttingDown());
    return new Promise((resolve, reject) => {
      this.#queue.push({ body: { ...body, data: toTransferable(body.data) }, resolve, reject });
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const job of this.#queue.splice(0)) job.reject(shuttingDown());
    await Promise.all([...this.#idle, ...this.#busy.keys()].map(worker => worker.terminate()));
  }

  /** Gives each worker one job at a time, so that a crashed worker fails only its current job. */
  #dispatch(): void {
    while (this.#queue.length > 0) {
      const worker =
        this.#idle.pop() ?? (this.#busy.size < this.#maxWorkers ? this.#startWorker() : undefined);
      const job = worker === undefined ? undefined : this.#queue.shift();
      if (worker === undefined || job === undefined) return;
      const timeout = setTimeout(() => {
        this.#removeWorker(worker, tooExpensive());
        void worker.terminate();
      }, PARSE_TIMEOUT_MS);
      this.#busy.set(worker, { job, timeout: timeout.unref() });
      worker.postMessage(job.body, [job.body.data.buffer as ArrayBuffer]);
    }
  }

  #startWorker(): Worker {
    const worker = new Worker(new URL('./body-parser-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    });
    worker.unref();
    worker.on('message', (result: WorkerResult) => {
      const job = this.#takeJob(worker);
      if (job === undefined) return; // the job timed out, and the worker is being terminated
      this.#idle.push(worker);
      finishJob(job, result);
      if (!this.#closed) this.#dispatch();
    });
    worker.on('error', error => this.#removeWorker(worker, error));
    worker.on('exit', () => this.#removeWorker(worker, shuttingDown()));
    return worker;
  }

  /** Removes a worker that has exited or is being terminated, and fails its job. */
  #removeWorker(worker: Worker, error: unknown): void {
    const job = this.#takeJob(worker);
    const index = this.#idle.indexOf(worker);
    if (index !== -1) this.#idle.splice(index, 1);
    job?.reject(isOutOfMemory(error) ? tooExpensive() : error);
    if (!this.#closed) this.#dispatch();
  }

  #takeJob(worker: Worker): Job | undefined {
    const { job, timeout } = this.#busy.get(worker) ?? {};
    clearTimeout(timeout);
    this.#busy.delete(worker);
    return job;
  }
}

function finishJob(job: Job, result: WorkerResult): void {
  if ('parsed' in result) job.resolve(result.parsed);
  else if ('bodyError' in result)
    job.reject(new DendroError(result.bodyError.code, result.bodyError.message));
  else job.reject(result.unexpectedError);
}

function shuttingDown(): DendroError {
  return new DendroError('unavailable', 'the server is shutting down; retry later');
}

function tooExpensive(): DendroError {
  return new DendroError(
    'payload_too_large',
    'parsing the body took too much time or memory; send smaller batches',
  );
}

function isOutOfMemory(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** Copies data that shares its ArrayBuffer, as small Buffers do: transferring that would detach the other Buffers in it. */
export function toTransferable(data: Uint8Array): Uint8Array {
  return data.byteLength === data.buffer.byteLength ? data : new Uint8Array(data);
}
