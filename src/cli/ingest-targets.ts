// The targets of `dendro ingest`: the store of a data directory, or a running server.
import { hash, randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { LogLines } from '../domain/log-line.ts';
import type { BodyParser } from '../intake/body-parser-pool.ts';
import type { ParsedBody } from '../intake/parse-body.ts';
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import type { EarlierLoad, LoadContent, Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { IngestSummary, RejectedRecord } from './ingest-summary.ts';
import { parseJson, type RunningServer, readErrorMessage } from './running-server.ts';
import { type RetryPolicy, sendRequest } from './send-request.ts';
import { checkListener } from './server-catalog.ts';
import { escapeForTerminal } from './terminal.ts';

/** NDJSON lines of one kind, or a record that cannot be written as a line. */
export type KindChunk =
  | { readonly kind: LogKind; readonly lines: Uint8Array }
  | { readonly rejection: Rejection };

export interface IngestTarget {
  /** Returns the earlier loads of a `LoadIdentity.source` from files of this size, if the target remembers them. */
  findLoadsOfSize(source: string, fileBytes: number): Promise<readonly EarlierLoad[]>;
  /**
   * Loads one file and counts its accepted and rejected records in the summary. If the target remembers that it has loaded the
   * same content before, loads nothing and returns that load.
   */
  load(
    chunks: AsyncIterable<KindChunk>,
    summary: IngestSummary,
    content: LoadContent,
  ): Promise<EarlierLoad | undefined>;
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

  async findLoadsOfSize(source: string, fileBytes: number): Promise<readonly EarlierLoad[]> {
    return (await this.#store.findLoadsOfSize?.(source, fileBytes)) ?? [];
  }

  load(
    chunks: AsyncIterable<KindChunk>,
    summary: IngestSummary,
    content: LoadContent,
  ): Promise<EarlierLoad | undefined> {
    return this.#store.append(this.#parseAll(chunks, summary), content);
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
      for (const { accepted, rejectedByCode, errors, lines } of result.batches) {
        summary.add(accepted, rejectedByCode, errors);
        if (accepted > 0) yield { kind: chunk.kind, count: accepted, lines };
      }
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
/** With the back-off of sendRequest, a little more than 5 minutes. */
const MAX_ATTEMPTS = 40;

interface BatchResponse {
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly (RejectedRecord & { readonly code: RejectCode })[];
}

/** Sends a file to the internal listener in batches. Each batch has an idempotency key, so a retry does not duplicate it. */
export class ServerTarget implements IngestTarget {
  readonly #server: RunningServer;
  readonly #retryPolicy: RetryPolicy;
  #hasReportedRetry = false;

  constructor(server: RunningServer) {
    this.#server = server;
    this.#retryPolicy = {
      maxAttempts: MAX_ATTEMPTS,
      retryUnreachable: true,
      onRetry: problem => this.#reportRetryOnce(problem),
    };
  }

  async findLoadsOfSize(): Promise<readonly EarlierLoad[]> {
    return [];
  }

  async load(
    chunks: AsyncIterable<KindChunk>,
    summary: IngestSummary,
    { again }: LoadContent,
  ): Promise<undefined> {
    const nextKey = createKeyChain(again ? randomUUID() : '');
    for await (const { chunk, response } of mapInOrder(chunks, CONCURRENT_BATCHES, async chunk => ({
      chunk,
      response:
        'kind' in chunk
          ? await this.#send(chunk.kind, chunk.lines, nextKey(chunk.kind, chunk.lines))
          : undefined,
    }))) {
      if ('rejection' in chunk) summary.reject(chunk.rejection);
      else if (response !== undefined) summary.add(response.accepted, response.rejected, response.errors);
    }
    return undefined;
  }

  async close(): Promise<void> {}

  async #send(kind: LogKind, lines: Uint8Array, idempotencyKey: string): Promise<BatchResponse> {
    const headers = { 'Content-Type': 'application/x-ndjson', 'Idempotency-Key': idempotencyKey };
    const init = { method: 'POST', body: lines, headers };
    const { status, body } = await sendRequest(
      this.#server,
      `/api/logs?source_name=${kind}`,
      init,
      this.#retryPolicy,
    );
    const { url } = this.#server;
    if (status === 404) await checkListener(this.#server, 'internal');
    if (status !== 200 && status !== 422) throw unexpectedResponse(url, status, body.toString());
    return readBatchResponse(url, status, body.toString());
  }

  #reportRetryOnce(problem: string): void {
    if (!this.#hasReportedRetry)
      process.stderr.write(`${escapeForTerminal(problem)}; retrying for about 5 minutes\n`);
    this.#hasReportedRetry = true;
  }
}

/**
 * Returns a function that derives the idempotency key of each batch from its content and all batches before it. A repeated load
 * of the same content gets the same keys, and two equal batches of one file get different keys.
 */
function createKeyChain(seed: string): (kind: LogKind, lines: Uint8Array) => string {
  let previous = seed;
  return (kind, lines) => {
    previous = hash('sha256', `${previous} ${kind} ${hash('sha256', lines)}`);
    return `ingest-${previous}`;
  };
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
