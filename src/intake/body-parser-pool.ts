// Parses bodies in a pool of worker threads, so that a large body does not delay queries. Senders take turns. If
// a body exceeds the time limit, only its worker is terminated. Exceeding the memory limit can crash the process, so
// decode-body.ts and, for protobuf, otlp-protobuf.ts limit the number of values.
import { Worker } from 'node:worker_threads';
import { DendroError, type ErrorCode } from '../domain/errors.ts';
import { MAX_PARSER_HEAP_MIB, PARSE_TIMEOUT_MS } from '../domain/limits.ts';
import type { EncodedBody, ParsedBody } from './parse-body.ts';

/** Parses bodies in worker threads or, in tests, in the calling thread. */
export interface BodyParser {
  /**
   * Rejects with DendroError if the body does not have the declared encoding or format, or if it exceeds a limit of size or time.
   * Rejects with the signal's reason if the signal aborts before the body is parsed.
   */
  parse(body: EncodedBody, options?: ParseOptions): Promise<ParsedBody>;
  close(): Promise<void>;
}

export interface ParseOptions {
  /** Senders that have bodies waiting take turns. */
  readonly sender?: string;
  /** Aborts when the result is no longer needed. */
  readonly signal?: AbortSignal;
  /** While it returns true, this body and those behind it wait. */
  readonly isPaused?: () => boolean;
}

/** The message from a worker. An error loses its class between threads, so a DendroError is sent as `bodyError`. */
export type WorkerResult =
  | { readonly parsed: ParsedBody }
  | { readonly bodyError: { readonly code: ErrorCode; readonly message: string } }
  | { readonly unexpectedError: Error };

/** A worker is ready when it has loaded its modules. */
export type WorkerMessage = WorkerResult | 'ready';

interface Job {
  readonly body: EncodedBody;
  /** Up to 1 MiB as received. */
  readonly isSmall: boolean;
  readonly sender: string;
  readonly isPaused: (() => boolean) | undefined;
  readonly resolve: (parsed: ParsedBody) => void;
  readonly reject: (error: unknown) => void;
}

interface PoolWorker {
  readonly thread: Worker;
  /** Undefined: the worker is idle. */
  job: Job | undefined;
  isReady: boolean;
  timeout: NodeJS.Timeout | undefined;
}

const SMALL_BODY_BYTES = 1024 * 1024;
const PAUSE_MS = 20;

export class BodyParserPool implements BodyParser {
  readonly #maxWorkers: number;
  readonly #workers = new Set<PoolWorker>();
  /** The waiting jobs by sender. The first sender is the next one; after its turn, it is the last. */
  readonly #waiting = new Map<string, Job[]>();
  #pause: NodeJS.Timeout | undefined;
  #closed = false;

  /** Workers start on demand. */
  constructor(maxWorkers: number) {
    this.#maxWorkers = maxWorkers;
  }

  parse(body: EncodedBody, { sender = '', signal, isPaused }: ParseOptions = {}): Promise<ParsedBody> {
    if (this.#closed) return Promise.reject(shuttingDown());
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const isSmall = body.data.byteLength <= SMALL_BODY_BYTES;
      const data = toTransferable(body.data);
      const job = { body: { ...body, data }, isSmall, sender, isPaused, resolve, reject };
      signal?.addEventListener('abort', () => this.#cancel(job, signal.reason), { once: true });
      const waiting = this.#waiting.get(sender);
      if (waiting === undefined) this.#waiting.set(sender, [job]);
      else waiting.push(job);
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const job of [...this.#waiting.values()].flat()) job.reject(shuttingDown());
    this.#waiting.clear();
    await Promise.all([...this.#workers].map(({ thread }) => thread.terminate()));
  }

  /** Gives each worker one job at a time, so that a crashed worker fails only its current job. */
  #dispatch(): void {
    clearTimeout(this.#pause);
    while (this.#waiting.size > 0) {
      if ([...this.#waiting.values()][0]?.[0]?.isPaused?.()) {
        this.#pause = setTimeout(() => this.#dispatch(), PAUSE_MS);
        return;
      }
      let worker = [...this.#workers].find(({ job }) => job === undefined);
      if (worker === undefined && this.#workers.size >= this.#maxWorkers) return;
      try {
        worker ??= this.#startWorker();
      } catch (error) {
        // The operating system allows no more threads. If there is another worker, the job waits for it.
        if (this.#workers.size > 0) return;
        const job = this.#takeNext();
        job?.reject(toJobError(error, job));
        continue;
      }
      const job = this.#takeNext();
      if (job !== undefined) this.#run(job, worker);
    }
  }

  #takeNext(): Job | undefined {
    for (const [sender, jobs] of this.#waiting) {
      const next = jobs.shift();
      this.#waiting.delete(sender);
      if (jobs.length > 0) this.#waiting.set(sender, jobs);
      return next;
    }
    return undefined;
  }

  #run(job: Job, worker: PoolWorker): void {
    worker.job = job;
    if (worker.isReady) this.#limitTime(worker);
    worker.thread.postMessage(job.body, [job.body.data.buffer as ArrayBuffer]);
  }

  /** The time that a worker takes to start does not count: the sender would get 413 for a small body, and drop its records. */
  #limitTime(worker: PoolWorker): void {
    worker.timeout = setTimeout(() => {
      void worker.thread.terminate();
      this.#removeWorker(worker, tooExpensive());
    }, PARSE_TIMEOUT_MS).unref();
  }

  /** Removes a waiting job. A running one finishes, at the latest after PARSE_TIMEOUT_MS: its worker holds the body in memory. */
  #cancel(job: Job, reason: unknown): void {
    const waiting = this.#waiting.get(job.sender);
    const index = waiting?.indexOf(job) ?? -1;
    if (index === -1) return;
    waiting?.splice(index, 1);
    if (waiting?.length === 0) this.#waiting.delete(job.sender);
    job.reject(reason);
  }

  #startWorker(): PoolWorker {
    const thread = new Worker(new URL('./body-parser-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: MAX_PARSER_HEAP_MIB },
    });
    const worker: PoolWorker = { thread, job: undefined, isReady: false, timeout: undefined };
    this.#workers.add(worker);
    thread.unref();
    thread.on('message', (result: WorkerMessage) => {
      if (result === 'ready') {
        worker.isReady = true;
        if (worker.job !== undefined) this.#limitTime(worker);
        return;
      }
      const job = takeJob(worker);
      if (job === undefined) return; // the job timed out, and the worker is being terminated
      finishJob(job, result);
      if (!this.#closed) this.#dispatch();
    });
    thread.on('error', error => this.#removeWorker(worker, error));
    thread.on('exit', () => this.#removeWorker(worker, shuttingDown()));
    return worker;
  }

  /** Removes a worker that has exited or is being terminated, and fails its job. */
  #removeWorker(worker: PoolWorker, error: unknown): void {
    this.#workers.delete(worker);
    const job = takeJob(worker);
    job?.reject(toJobError(error, job));
    if (!this.#closed) this.#dispatch();
  }
}

function takeJob(worker: PoolWorker): Job | undefined {
  const { job } = worker;
  clearTimeout(worker.timeout);
  worker.job = undefined;
  return job;
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

/**
 * The error if a worker runs out of memory on a small body. The body itself is probably not the cause: the process has too
 * little memory. The status is 503, because a shipper would drop the records after 413.
 */
function outOfMemory(cause: unknown): DendroError {
  return new DendroError('unavailable', 'too little memory to parse the body; retry later', {
    cause,
    retryAfterSeconds: 5,
  });
}

/** Returns the error with which a job is rejected. `error` is why its worker stopped or could not start. */
function toJobError(error: unknown, { isSmall }: Job): unknown {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ERR_WORKER_OUT_OF_MEMORY':
      return isSmall ? outOfMemory(error) : tooExpensive();
    case 'ERR_WORKER_INIT_FAILED': // such as without a free file descriptor, or at the limit of threads
      return new DendroError('unavailable', 'no thread can be started to parse the body; retry later', {
        cause: error,
        retryAfterSeconds: 5,
      });
    default:
      return error;
  }
}

/**
 * Copies data that shares its ArrayBuffer with other Buffers, as small Buffers do: transferring the ArrayBuffer would detach the
 * other Buffers.
 */
export function toTransferable(data: Uint8Array): Uint8Array {
  return data.byteLength === data.buffer.byteLength ? data : new Uint8Array(data);
}
