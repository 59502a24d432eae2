// The targets of `dendro ingest`: the store of a data directory, or a running server.
import { hash, randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { selectErased } from '../domain/erased.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { LogLines } from '../domain/log-line.ts';
import type { BodyParser } from '../intake/body-parser-pool.ts';
import type { Rejection } from '../logs/rejection.ts';
import type { EarlierLoad, LoadContent, Store } from '../store/store.ts';
import { parseJson } from '../system/parse-json.ts';
import type { IngestSummary, RejectedRecord } from './ingest-summary.ts';
import type { Io } from './io.ts';
import {
  createResponseError,
  type RetryPolicy,
  type ServerTarget,
  sendRequest,
  wrongListener,
} from './target.ts';
import { escapeForTerminal } from './terminal.ts';

/** NDJSON lines of one kind. */
interface KindLines {
  readonly kind: LogKind;
  readonly lines: Uint8Array;
}

/** Consecutive records of a file, or the rejection of one record, such as one from an unknown source. */
export type KindChunk = KindLines | { readonly rejection: Rejection };

/**
 * Loads one file and counts its accepted and rejected records in the summary. If the target remembers that it has loaded the
 * same content before, loads nothing and returns that load.
 */
export type LoadFile = (
  chunks: AsyncIterable<KindChunk>,
  summary: IngestSummary,
  content: LoadContent,
) => Promise<EarlierLoad | undefined>;

/** Two chunks for each parser thread, so that no thread waits for its next chunk. */
const CONCURRENT_CHUNKS = 2 * availableParallelism();

/**
 * Appends a file to an open store. If the file cannot be read, nothing is stored. If an insert fails, DuckDB stores nothing,
 * and ClickHouse may have stored some blocks.
 */
export function loadIntoStore(store: Store, parser: BodyParser, retentionDays: number): LoadFile {
  const parse = async (chunk: KindChunk, nowMicros: number) => {
    if ('rejection' in chunk) return chunk;
    const { kind, lines } = chunk;
    const { batches } = await parser.parse({
      data: lines,
      contentCoding: '',
      format: 'ndjson',
      kind,
      context: { nowMicros, retentionDays },
      needsDeduplication: false,
    });
    return { kind, batches, nowMicros };
  };
  async function* parseAll(
    chunks: AsyncIterable<KindChunk>,
    summary: IngestSummary,
    { restores, nowMicros }: LoadContent,
  ): AsyncGenerator<LogLines> {
    // Records without a timestamp have the time of the load, and are in the order of the file.
    let next = Number(nowMicros);
    const parseNext = (chunk: KindChunk) => parse(chunk, next++);
    for await (const parsed of mapInOrder(chunks, CONCURRENT_CHUNKS, parseNext)) {
      if ('rejection' in parsed) {
        summary.reject(parsed.rejection);
        continue;
      }
      for (const { accepted, rejectedByCode, errors, lines } of parsed.batches) {
        const times = { nowMicros: parsed.nowMicros, firstMicros: Number(restores?.loadedAtMicros) };
        const loaded = restores ? selectErased(lines, restores.erased, times) : { count: accepted, lines };
        summary.add(loaded.count, restores ? {} : rejectedByCode, errors);
        if (loaded.count > 0) yield { kind: parsed.kind, ...loaded };
      }
    }
  }
  return (chunks, summary, content) => store.append(parseAll(chunks, summary, content), content);
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
export function loadIntoServer(server: ServerTarget, { stderr }: Io): LoadFile {
  let hasReportedRetry = false;
  const policy: RetryPolicy = {
    maxAttempts: MAX_ATTEMPTS,
    retryUnreachable: true,
    onRetry(problem) {
      if (!hasReportedRetry) stderr.write(`${escapeForTerminal(problem)}; retrying for about 6 minutes\n`);
      hasReportedRetry = true;
    },
  };
  return async (chunks, summary, { again }) => {
    const nextKey = createKeyChain(again ? randomUUID() : '');
    const send = async (chunk: KindChunk) => {
      if ('rejection' in chunk) return chunk;
      return sendBatch(server, chunk, nextKey(chunk), policy);
    };
    for await (const result of mapInOrder(chunks, CONCURRENT_BATCHES, send)) {
      if ('rejection' in result) summary.reject(result.rejection);
      else summary.add(result.accepted, result.rejected, result.errors);
    }
    return undefined;
  };
}

async function sendBatch(
  server: ServerTarget,
  { kind, lines }: KindLines,
  idempotencyKey: string,
  policy: RetryPolicy,
): Promise<BatchResponse> {
  const headers = { 'Content-Type': 'application/x-ndjson', 'Idempotency-Key': idempotencyKey };
  const init = { method: 'POST', body: lines, headers };
  const response = await sendRequest(server, `/api/logs?source_name=${kind}`, init, policy);
  const { status } = response;
  const body = response.body.toString();
  if (status === 404) throw wrongListener(server, 'internal');
  if (status !== 200 && status !== 422) throw createResponseError(server, status, body);
  const result = parseJson(body) as BatchResponse | undefined;
  if (typeof result?.accepted === 'number') return result;
  throw createResponseError(server, status, body, 'is it the internal listener?');
}

/**
 * Returns a function that derives the idempotency key of each batch from its content and all batches before it. A repeated load
 * of the same content gets the same keys, and two equal batches of one file get different keys.
 */
function createKeyChain(seed: string): (batch: KindLines) => string {
  let previous = seed;
  return ({ kind, lines }) => {
    previous = hash('sha256', `${previous} ${kind} ${hash('sha256', lines)}`);
    return `ingest-${previous}`;
  };
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
