// Reads the body of a request, up to a size limit and not slower than a minimum rate. The memory that it takes depends on the
// bytes that have arrived, not on Content-Length or on the number of chunks.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import { isJsonObject, parseJson } from '../system/parse-json.ts';
import type { Timer } from '../system/timer.ts';

export interface UploadRate {
  /** 0: no minimum. */
  readonly minBytesPerSecond: number;
  readonly timer: Timer;
}

interface Limits {
  readonly maxBytes: number;
  /** Creates the error for a body with more than `maxBytes`. */
  readonly tooLarge: () => DendroError;
  /**
   * Called before each block of memory for the body is allocated (BLOCK_BYTES). The first call is before any byte is read. May
   * throw to reject the request.
   */
  readonly reserve: (byteLength: number) => void;
  readonly uploadRate: UploadRate;
}

interface JsonObjectRules extends Pick<Limits, 'maxBytes' | 'uploadRate'> {
  /** Any other key is an error: a misspelled one must not be ignored. */
  readonly keys: readonly string[];
  /** A valid body, for the error message. */
  readonly example: string;
}

/** Reads a small body that must be a JSON object. The values are not checked. */
export async function readJsonObject(
  rawRequest: IncomingMessage,
  { keys, example, ...limits }: JsonObjectRules,
): Promise<Readonly<Record<string, unknown>>> {
  const body = await readSmallBody(rawRequest, limits);
  const object = parseObject(body.toString('utf8'));
  if (object === undefined)
    throw new DendroError('invalid_body', `the body is not a JSON object such as ${example}`);
  const unknownKey = Object.keys(object).find(key => !keys.includes(key));
  if (unknownKey === undefined) return object;
  throw new DendroError('invalid_parameter', `the body has an unknown key; allowed: ${keys.join(', ')}`, {
    param: unknownKey,
  });
}

/** Returns undefined if the text is not a JSON object. */
function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = parseJson(text);
  return isJsonObject(value) ? value : undefined;
}

/** Reserves no memory: the headers of a request, which need no token, can be larger than a small body. */
export function readSmallBody(
  rawRequest: IncomingMessage,
  { maxBytes, uploadRate }: Pick<Limits, 'maxBytes' | 'uploadRate'>,
): Promise<Buffer> {
  const tooLarge = () =>
    new DendroError('payload_too_large', `the body is larger than ${maxBytes / 1024} KiB`);
  return readRequestBody(rawRequest, { maxBytes, tooLarge, reserve: () => {}, uploadRate });
}

/** The media type of a Content-Type, without its parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

export async function readRequestBody(rawRequest: IncomingMessage, limits: Limits): Promise<Buffer> {
  const declaredBytes = Number(rawRequest.headers['content-length'] ?? Number.NaN);
  if (declaredBytes > limits.maxBytes) throw limits.tooLarge();
  const body = new BodyBuffer(limits, declaredBytes);
  let isReading = true;
  let stopRateCheck = () => {};
  try {
    await new Promise<void>((resolve, reject) => {
      stopRateCheck = startRateChecks(limits.uploadRate, () => body.length, reject);
      rawRequest.on('data', (chunk: Buffer) => {
        // The rest of a rejected body is read but not kept, because the connection's next request follows it.
        if (!isReading) return;
        try {
          body.append(chunk);
        } catch (error) {
          isReading = false;
          reject(error as Error);
        }
      });
      rawRequest.once('end', () => {
        isReading = false; // the event `close` follows
        resolve();
      });
      rawRequest.once('close', () => {
        if (isReading) reject(connectionClosed());
      });
      if (rawRequest.destroyed) reject(connectionClosed());
    });
    return body.toBuffer();
  } finally {
    isReading = false;
    stopRateCheck();
  }
}

function connectionClosed(): DendroError {
  return new DendroError('invalid_body', 'the connection closed before the whole body was received');
}

/** Chunks are copied into blocks of this size: a chunk of one byte takes hundreds of bytes as an object of its own. */
const BLOCK_BYTES = 16 * 1024;
/** The least that is reserved for a block: even a request with a tiny body takes almost this much memory. */
const MIN_RESERVED_BYTES = 8 * 1024;

/** The received part of a body. Reserves the memory of a block before allocating it. */
class BodyBuffer {
  readonly #limits: Limits;
  /** The expected length, or the maximum if the request has no Content-Length. */
  readonly #maxLength: number;
  readonly #blocks: Buffer[] = [];
  #lastBlock: Buffer;
  #usedInLastBlock = 0;
  length = 0;

  constructor(limits: Limits, declaredBytes: number) {
    this.#limits = limits;
    this.#maxLength = Number.isNaN(declaredBytes) ? limits.maxBytes : declaredBytes;
    this.#lastBlock = this.#addBlock();
  }

  append(chunk: Buffer): void {
    if (this.length + chunk.length > this.#limits.maxBytes) throw this.#limits.tooLarge();
    for (let start = 0; start < chunk.length; ) {
      if (this.#usedInLastBlock === this.#lastBlock.length) this.#lastBlock = this.#addBlock();
      const copied = chunk.copy(this.#lastBlock, this.#usedInLastBlock, start);
      this.#usedInLastBlock += copied;
      this.length += copied;
      start += copied;
    }
  }

  toBuffer(): Buffer {
    const isOneFullBlock = this.#blocks.length === 1 && this.#lastBlock.length === this.length;
    return isOneFullBlock ? this.#lastBlock : Buffer.concat(this.#blocks, this.length);
  }

  #addBlock(): Buffer {
    const bytes = Math.min(BLOCK_BYTES, this.#maxLength - this.length);
    this.#limits.reserve(Math.max(bytes, MIN_RESERVED_BYTES));
    const block = Buffer.allocUnsafeSlow(bytes);
    this.#blocks.push(block);
    this.#usedInLastBlock = 0;
    return block;
  }
}

/** The rate is measured over periods of this length. A sender that sends nothing for a whole period is always too slow. */
const RATE_CHECK_SECONDS = 10;

/** Calls `reject` if fewer bytes than required arrived since the last check. Returns a function that stops the checks. */
function startRateChecks(
  { minBytesPerSecond, timer }: UploadRate,
  receivedBytes: () => number,
  reject: (error: DendroError) => void,
): () => void {
  if (minBytesPerSecond === 0) return () => {};
  let receivedBefore = 0;
  let cancel = () => {};
  let isStopped = false;
  const check = () => {
    if (receivedBytes() - receivedBefore < minBytesPerSecond * RATE_CHECK_SECONDS)
      reject(tooSlow(minBytesPerSecond));
    receivedBefore = receivedBytes();
    schedule();
  };
  const schedule = () => {
    if (isStopped) return;
    // If this process was busy, setImmediate lets it first read what has arrived in the meantime.
    cancel = timer.after(RATE_CHECK_SECONDS * 1000, () => void setImmediate(check));
  };
  schedule();
  return () => {
    isStopped = true;
    cancel();
  };
}

function tooSlow(minBytesPerSecond: number): DendroError {
  return new DendroError(
    'request_timeout',
    `the body arrives too slowly; the minimum is ${minBytesPerSecond} bytes per second, measured over ${RATE_CHECK_SECONDS} s`,
  );
}
