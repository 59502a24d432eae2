// A request that was stored, by which its repeats are recognized, and its format on disk: in a block header of the spool, and as a
// line of a `.requests` file (idempotency.ts).
import { parseJson } from '../system/parse-json.ts';
import type { RecordError } from './parse-body.ts';

export interface IntakeResult {
  readonly accepted: number;
  readonly rejected: number;
  /** See `selectErrors`. A remembered result has only the first of them (`toRemembered`). */
  readonly errors: readonly RecordError[];
}

/** A batch that was stored, as it is remembered, in memory and on disk. */
export interface CompletedRequest {
  /**
   * A hash of the sender, the kind, and either the Idempotency-Key header or the digest of the body; for OTLP, also of the source
   * that the request names.
   */
  readonly key: string;
  /** SHA-256 of the decompressed body. */
  readonly digest: string;
  /**
   * The request has no Idempotency-Key, and some record has no identity (`hasIdentity` in logs/record.ts). The same body is
   * then a repeat only if the response to the first request was not completely written to its connection.
   */
  readonly forgetOnceDelivered: boolean;
  /** Time of arrival, Unix microseconds. */
  readonly atMicros: number;
  readonly result: IntakeResult;
}

/** A request on disk, in a `.requests` file and in a block header of the spool. The names are part of both formats. */
export interface DiskRequest {
  readonly key: string;
  readonly digest: string;
  readonly atMicros: number;
  readonly answer: IntakeResult;
  /**
   * See `forgetOnceDelivered`. Versions up to 0.2.0 ignore this field. That is harmless: they store every such
   * request as a new one, without looking for an earlier one.
   */
  readonly onlyIfUndelivered?: true;
}

/** The part of a result that is remembered: 20 error messages of every request would fill the memory. */
export function toRemembered({ accepted, rejected, errors }: IntakeResult): IntakeResult {
  return { accepted, rejected, errors: errors.slice(0, 1) };
}

export function requestToDisk(request: CompletedRequest): DiskRequest {
  const { key, digest, atMicros, result, forgetOnceDelivered } = request;
  const answer = toRemembered(result);
  return { key, digest, atMicros, answer, ...(forgetOnceDelivered ? { onlyIfUndelivered: true } : {}) };
}

/** Returns undefined if the value is not a request. */
export function requestFromDisk(value: unknown): CompletedRequest | undefined {
  const { key, digest, atMicros, answer, onlyIfUndelivered } = (value ?? {}) as Partial<DiskRequest>;
  if (typeof key !== 'string' || typeof digest !== 'string' || typeof atMicros !== 'number') return undefined;
  if (typeof answer?.accepted !== 'number' || typeof answer.rejected !== 'number') return undefined;
  if (!Array.isArray(answer.errors)) return undefined;
  const [error] = answer.errors as (Partial<RecordError> | null)[];
  if (error !== undefined && typeof error?.message !== 'string') return undefined;
  return { key, digest, atMicros, result: answer, forgetOnceDelivered: onlyIfUndelivered === true };
}

/** Parses a line of a `.requests` file. Returns undefined if it is not a request. */
export function parseRequestLine(line: string): CompletedRequest | undefined {
  return requestFromDisk(parseJson(line));
}

const LINES_PER_WRITE = 1_000;

/** The lines of a `.requests` file. */
export async function* formatRequests(requests: readonly CompletedRequest[]): AsyncGenerator<Buffer> {
  for (let start = 0; start < requests.length; start += LINES_PER_WRITE) {
    const group = requests.slice(start, start + LINES_PER_WRITE);
    yield Buffer.from(group.map(request => `${JSON.stringify(requestToDisk(request))}\n`).join(''));
  }
}
