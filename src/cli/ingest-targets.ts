// The targets of `dendro ingest`: the store of a data directory, or a running server.
import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { LogLines } from '../domain/log-line.ts';
import type { BodyParser } from '../intake/body-parser-pool.ts';
import type { ParsedBody } from '../intake/parse-body.ts';
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { IngestSummary, RejectedRecord } from './ingest-summary.ts';
import { describeUnreachable, parseJson, type RunningServer, readErrorMessage } from './running-server.ts';
import { escapeForTerminal } from './terminal.ts';

/** NDJSON lines of one kind, or a record that cannot be written as a line. */
export type KindChunk =
  | { readonly kind: LogKind; readonly lines: Uint8Array }
  | { readonly rejection: Rejection };

export interface IngestTarget {
  /** Loads one file and counts its accepted and rejected records in the summary. */
  load(chunks: AsyncIterable<KindChunk>, summary: IngestSummary): Promise<void>;
  close(): Promise<void>;
}

/** Two chunks for each parser thread, so that no thread waits for its next chunk. */
const CONCURRENT_CHUNKS = 2 * availableParallelism();

/**
 * Appends a file to an open store. If the file cannot be read, nothing is stored. If an insert fails, DuckDB stores nothing,
 * and ClickHouse may have stored some blocks.
 */
export class StoreTarget implements IngestTarget {
  readonly #store: Store;
  readonly #parser: BodyParser;
  readonly #retentionDays: number;
  readonly #clock: Clock;

  constructor(store: Store, parser: BodyParser, retentionDays: number, clock: Clock) {
    this.#store = store;
    this.#parser = parser;
    this.#retentionDays = retentionDays;
    this.#clock = clock;
  }

  load(chunks: AsyncIterable<KindChunk>, summary: IngestSummary): Promise<void> {
    return this.#store.append(this.#parseAll(chunks, summary));
  }

  async close(): Promise<void> {
    await this.#parser.close();
    await this.#store.close();
  }

  async *#parseAll(chunks: AsyncIterable<KindChunk>, summary: IngestSummary): AsyncGenerator<LogLines> {
    for await (const { chunk, result } of mapInOrder(chunks, CONCURRENT_CHUNKS, async chunk => ({
      chunk,
      result: await this.#parse(chunk),
    }))) {
      if (result === undefined || !('kind' in chunk)) {
        if ('rejection' in chunk) summary.reject(chunk.rejection);
        continue;
      }
      summary.add(result.accepted, result.rejectedByCode, result.errors);
      if (result.accepted > 0) yield { kind: chunk.kind, count: result.accepted, lines: result.lines };
    }
  }

  async #parse(chunk: KindChunk): Promise<ParsedBody | undefined> {
    if (!('kind' in chunk)) return undefined;
    return this.#parser.parse({
      data: chunk.lines,
      contentCoding: '',
      format: 'ndjson',
      kind: chunk.kind,
      context: { nowMicros: Number(this.#clock()), retentionDays: this.#retentionDays },
      needsDeduplication: false,
    });
  }
}

const CONCURRENT_BATCHES = 4;
/** With the back-off below, a little more than 5 minutes. */
const MAX_ATTEMPTS = 40;
const MAX_BACKOFF_SECONDS = 10;

interface BatchResponse {
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly (RejectedRecord & { readonly code: RejectCode })[];
}

/** Sends a file to the internal listener in batches. Each batch has an idempotency key, so a retry does not duplicate it. */
export class ServerTarget implements IngestTarget {
  readonly #server: RunningServer;
  #hasReportedRetry = false;

  constructor(server: RunningServer) {
    this.#server = server;
  }

  async load(chunks: AsyncIterable<KindChunk>, summary: IngestSummary): Promise<void> {
    for await (const { chunk, response } of mapInOrder(chunks, CONCURRENT_BATCHES, async chunk => ({
      chunk,
      response: 'kind' in chunk ? await this.#send(chunk.kind, chunk.lines) : undefined,
    }))) {
      if ('rejection' in chunk) summary.reject(chunk.rejection);
      else if (response !== undefined) summary.add(response.accepted, response.rejected, response.errors);
    }
  }

  async close(): Promise<void> {}

  /** Retries if the network fails, or if the server is overloaded or restarting. */
  async #send(kind: string, lines: Uint8Array): Promise<BatchResponse> {
    const { url } = this.#server;
    const key = randomUUID();
    for (let attempt = 1; ; attempt++) {
      const response = await this.#post(kind, lines, key).catch((error: Error) => error);
      const isLast = attempt === MAX_ATTEMPTS;
      if (response instanceof Error) {
        const problem = describeUnreachable(this.#server, response);
        if (isLast) throw new OperatorError(problem);
        this.#reportRetryOnce(problem);
        await sleep(backoffMs(attempt, null));
        continue;
      }
      const { status } = response;
      const body = await response.text();
      if (status === 200 || status === 422) return readBatchResponse(url, status, body);
      if (isLast || (status !== 429 && status !== 503)) throw unexpectedResponse(url, status, body);
      await sleep(backoffMs(attempt, response.headers.get('retry-after')));
    }
  }

  #reportRetryOnce(problem: string): void {
    if (!this.#hasReportedRetry)
      process.stderr.write(`${escapeForTerminal(problem)}; retrying for about 5 minutes\n`);
    this.#hasReportedRetry = true;
  }

  #post(kind: string, body: Uint8Array, idempotencyKey: string): Promise<Response> {
    return fetch(`${this.#server.url}/api/logs?source_name=${kind}`, {
      method: 'POST',
      body,
      headers: {
        'X-API-KEY': this.#server.token,
        'Content-Type': 'application/x-ndjson',
        'Idempotency-Key': idempotencyKey,
      },
    });
  }
}

/** Uses Retry-After if the server sent it, otherwise exponential back-off. */
function backoffMs(attempt: number, retryAfter: string | null): number {
  const seconds = retryAfter === null ? 0.1 * 2 ** attempt : Number(retryAfter) || 1;
  return Math.min(seconds, MAX_BACKOFF_SECONDS) * 1000;
}

function readBatchResponse(url: string, status: number, body: string): BatchResponse {
  const response = parseJson(body) as BatchResponse | undefined;
  if (typeof response?.accepted !== 'number') throw unexpectedResponse(url, status, body);
  return response;
}

function unexpectedResponse(url: string, status: number, body: string): OperatorError {
  const reason = readErrorMessage(body) ?? 'no reason given; is it the internal listener?';
  return new OperatorError(`${url} returned ${status}: ${reason}`);
}

/** Maps up to `concurrency` items at a time and yields the results in the order of the items. */
async function* mapInOrder<T, R>(
  items: AsyncIterable<T>,
  concurrency: number,
  map: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  for await (const item of items) {
    const result = map(item);
    result.catch(() => {}); // awaited below, but another one may fail before
    running.push(result);
    if (running.length < concurrency) continue;
    const first = running.shift();
    if (first !== undefined) yield await first;
  }
  for (const result of running) yield await result;
}
