// Brings files into a running server: in batches, each sent until it is answered and stored once however often it is sent.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError, UsageError } from '../domain/errors.ts';
import type { RejectCode } from '../logs/rejection.ts';
import { type IngestDestination, inOrder, type KindChunk } from './ingest-destination.ts';
import type { IngestSummary, RejectedRecord } from './ingest-tally.ts';
import { readServerUrl } from './server-url.ts';

const BATCHES_AT_ONCE = 4;
/** Some minutes. */
const ATTEMPTS = 40;
const LONGEST_PAUSE_SECONDS = 10;

interface ServerAnswer {
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly (RejectedRecord & { readonly code: RejectCode })[];
}

export class ServerDestination implements IngestDestination {
  readonly #url: string;
  readonly #token: string;
  #toldOfTrouble = false;

  /** The address of the internal listener. */
  constructor(url: string, token: string | undefined) {
    if (token === undefined) throw new UsageError('--url needs a token: --token, or DENDRO_API_KEY');
    this.#url = readServerUrl(url);
    this.#token = token;
  }

  async load(pieces: AsyncIterable<KindChunk>, tally: IngestSummary): Promise<void> {
    for await (const { piece, answer } of inOrder(pieces, BATCHES_AT_ONCE, async piece => ({
      piece,
      answer: 'kind' in piece ? await this.#send(piece.kind, piece.lines) : undefined,
    }))) {
      if ('rejection' in piece) tally.reject(piece.rejection);
      else if (answer !== undefined) tally.note(answer.accepted, answer.rejected, answer.errors);
    }
  }

  async close(): Promise<void> {}

  /** A network that fails or a server that is full or restarts is no reason to give up at once. */
  async #send(kind: string, lines: Uint8Array): Promise<ServerAnswer> {
    const key = randomUUID();
    for (let attempt = 1; ; attempt++) {
      const response = await this.#post(kind, lines, key).catch((error: Error) => error);
      const isLast = attempt === ATTEMPTS;
      if (response instanceof Error) {
        const fault = `${this.#url} cannot be reached: ${causeOf(response)}`;
        if (isLast) throw new OperatorError(fault);
        this.#tellOnce(fault);
        await sleep(pauseMs(attempt, null));
        continue;
      }
      const body = await response.text();
      if (response.status === 200 || response.status === 422) return readAnswer(body, response.status);
      if (isLast || (response.status !== 429 && response.status !== 503))
        throw new OperatorError(`${this.#url} answers ${response.status}: ${messageOf(body)}`);
      await sleep(pauseMs(attempt, response.headers.get('retry-after')));
    }
  }

  #tellOnce(fault: string): void {
    if (!this.#toldOfTrouble) process.stderr.write(`${fault}; trying again for some minutes\n`);
    this.#toldOfTrouble = true;
  }

  #post(kind: string, body: Uint8Array, key: string): Promise<Response> {
    return fetch(`${this.#url}/api/logs?source_name=${kind}`, {
      method: 'POST',
      body,
      headers: {
        'X-API-KEY': this.#token,
        'Content-Type': 'application/x-ndjson',
        'Idempotency-Key': key,
      },
    });
  }
}

/** What the server says, else longer and longer. */
function pauseMs(attempt: number, retryAfter: string | null): number {
  const seconds = retryAfter === null ? 0.1 * 2 ** attempt : Number(retryAfter) || 1;
  return Math.min(seconds, LONGEST_PAUSE_SECONDS) * 1000;
}

function readAnswer(body: string, status: number): ServerAnswer {
  const answer = parse(body) as ServerAnswer | undefined;
  if (typeof answer?.accepted !== 'number')
    throw new OperatorError(`the server answers ${status}: ${messageOf(body)}`);
  return answer;
}

/** Undefined for what is no JSON. */
function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function messageOf(body: string): string {
  const answer = parse(body) as { error?: { message?: string } } | undefined;
  return answer?.error?.message ?? 'the server did not say why; is it the internal listener?';
}

function causeOf(error: Error): string {
  return (error.cause as Error | undefined)?.message ?? error.message;
}
