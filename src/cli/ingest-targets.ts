// The targets of `dendro ingest`: the store of a data directory, or a running server.
import { hash, randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { LogKind } from '../domain/log-columns.ts';
import type { LogLines } from '../domain/log-line.ts';
import type { BodyParser } from '../intake/body-parser-pool.ts';
import type { ParsedBody } from '../intake/parse-body.ts';
import type { Rejection } from '../logs/rejection.ts';
import type { EarlierLoad, LoadContent, Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { IngestSummary, RejectedRecord } from './ingest-summary.ts';
import { createResponseError, parseJson, type RunningServer } from './running-server.ts';
import { type RetryPolicy, sendRequest } from './send-request.ts';
import { checkListener } from './server-catalog.ts';
import { escapeForTerminal } from './terminal.ts';

/** NDJSON lines of one kind, or the rejection of one record, such as one from an unknown source. */
export type KindChunk = (
  | { readonly kind: LogKind; readonly lines: Uint8Array }
  | { readonly rejection: Rejection }
) &
  Positions;

interface Positions {
  /** The position of each record in the file, from 0. Undefined: the records follow those of the chunk before. */
  readonly positions?: readonly number[] | undefined;
}

export interface IngestTarget {
  /** Returns the earlier loads with this `LoadIdentity.source` and file size. Empty if the target does not remember loads. */
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

/** A chunk whose lines are parsed. */
type ParsedChunk = (
  | { readonly kind: LogKind; readonly batches: ParsedBody['batches'] }
  | { readonly rejection: Rejection }
) &
  Positions;

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
    return this.#store.findLoadsOfSize(source, fileBytes);
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
    for await (const parsed of mapInOrder(chunks, CONCURRENT_CHUNKS, chunk => this.#parse(chunk))) {
      if ('rejection' in parsed) {
        summary.reject(parsed.rejection, parsed.positions);
        continue;
      }
      for (const { accepted, rejectedByCode, errors, lines } of parsed.batches) {
        summary.add(accepted, rejectedByCode, errors, parsed.positions);
        if (accepted > 0) yield { kind: parsed.kind, count: accepted, lines };
      }
    }
  }

  async #parse(chunk: KindChunk): Promise<ParsedChunk> {
    if ('rejection' in chunk) return chunk;
    const { kind, lines, positions } = chunk;
    const { batches } = await this.#parser.parse({
      data: lines,
      contentCoding: '',
      format: 'ndjson',
      kind,
      context: { nowMicros: Number(this.#clock()), retentionDays: this.#retentionDays },
      needsDeduplication: false,
    });
    return { kind, batches, positions };
  }
}

const CONCURRENT_BATCHES = 4;
/** With the back-off of sendRequest, all pauses between the attempts add up to 343 s. */
const MAX_ATTEMPTS = 40;

interface BatchResponse {
  readonly accepted: number;
  readonly rejected: number;
  /** Of the first rejected records only. */
  readonly errors: readonly RejectedRecord[];
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
    const send = async (
      chunk: KindChunk,
    ): Promise<(BatchResponse | { readonly rejection: Rejection }) & Positions> => {
      if ('rejection' in chunk) return chunk;
      const { kind, lines, positions } = chunk;
      return { ...(await this.#send(kind, lines, nextKey(kind, lines))), positions };
    };
    for await (const result of mapInOrder(chunks, CONCURRENT_BATCHES, send)) {
      if ('rejection' in result) summary.reject(result.rejection, result.positions);
      else summary.add(result.accepted, result.rejected, result.errors, result.positions);
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
    if (status !== 200 && status !== 422) throw createResponseError(url, status, body.toString());
    return readBatchResponse(url, status, body.toString());
  }

  #reportRetryOnce(problem: string): void {
    if (!this.#hasReportedRetry)
      process.stderr.write(`${escapeForTerminal(problem)}; retrying for about 6 minutes\n`);
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
  if (typeof response?.accepted !== 'number')
    throw createResponseError(url, status, body, 'is it the internal listener?');
  return response;
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
    result.catch(() => {}); // awaited below; if an earlier one fails first, this one is never awaited
    running.push(result);
    if (running.length < concurrency) continue;
    const first = running.shift();
    if (first !== undefined) yield await first;
  }
  for (const result of running) yield await result;
}
