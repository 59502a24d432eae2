// Senders that keep a running server busy, and a ledger of the batches that they sent.
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Random } from '../../src/demo/random.ts';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { sized } from '../support/fault-report.ts';
import { otlpRequest, text } from '../support/otlp.ts';
import { PROCESS_API_KEY } from '../support/process.ts';
import { SEED } from '../support/seed.ts';

export interface SentBatch {
  readonly number: number;
  readonly kind: LogKind;
  readonly count: number;
  readonly encoding: 'gzip' | 'identity';
  readonly isOtlp?: boolean;
  /** Returns nothing once the batch is acknowledged: a long run would need too much memory. */
  body: () => Uint8Array<ArrayBuffer>;
  /** The response was 200, so it must be stored once. Any other batch must be stored once or not at all. */
  acknowledged: boolean;
}

export interface BatchShape {
  readonly kinds: readonly LogKind[];
  /** Minimum and maximum number of records in a batch. */
  readonly records: readonly [number, number];
  /** Random bytes in each record, so that it does not compress. */
  readonly padding?: number;
  /** Sent as OTLP. Such a record has no id: its message has the number of the batch. */
  readonly isOtlp?: boolean;
}

const CHEAP_RECORDS = 500;
const ID_DIGITS = 8;
const CHEAP_LINES = Array.from({ length: CHEAP_RECORDS }, (_, line) => {
  const id = `${'0'.repeat(ID_DIGITS)}-${String(line).padStart(4, '0')}`;
  const metadata = { request: { method: 'GET', path: '/rest/v1/items', host: 'p0.example' }, status: 200 };
  return `${JSON.stringify({ id, project: 'p0', message: 'GET /rest/v1/items', metadata })}\n`;
});
const CHEAP_BODY = Buffer.from(CHEAP_LINES.join(''));
const CHEAP_LINE_BYTES = CHEAP_BODY.length / CHEAP_RECORDS;
const ID_OFFSET = '{"id":"'.length;

export class Ledger {
  readonly batches: SentBatch[] = [];
  /** How often each status was received; `none` if there was no response. */
  readonly statuses = new Map<number | 'none', number>();
  readonly #random = new Random(SEED);

  createBatch({ kinds, records: [min, max], padding = 0, isOtlp = false }: BatchShape): SentBatch {
    const number = this.batches.length;
    const kind = kinds[number % kinds.length] ?? 'edge';
    const count = min + Math.floor(this.#random.next() * (max - min + 1));
    const content = isOtlp ? otlpBody(number, count) : ndjsonBody(number, count, padding);
    const body = gzipSync(content, { level: 1 });
    return this.#add({
      number,
      kind,
      count,
      encoding: 'gzip',
      isOtlp,
      body: () => body,
      acknowledged: false,
    });
  }

  /** A batch that costs the sender far less than the server: a copy of one body with other ids. */
  createCheapBatch(): SentBatch {
    const number = this.batches.length;
    const body = () => {
      const bytes = Buffer.from(CHEAP_BODY);
      for (let line = 0; line < CHEAP_RECORDS; line++)
        bytes.write(String(number).padStart(ID_DIGITS, '0'), line * CHEAP_LINE_BYTES + ID_OFFSET, 'latin1');
      return bytes;
    };
    const rest = { kind: 'edge', count: CHEAP_RECORDS, encoding: 'identity', acknowledged: false } as const;
    return this.#add({ ...rest, number, body });
  }

  #add(batch: SentBatch): SentBatch {
    this.batches.push(batch);
    return batch;
  }

  /** Sends batches until the signal aborts or the server does not respond. */
  async keepSending(url: string, shape: BatchShape, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await this.send(url, this.createBatch(shape))) !== undefined);
  }

  /** Returns the status, or undefined if there was no response. */
  async send(url: string, batch: SentBatch): Promise<number | undefined> {
    const status = await send(url, batch);
    this.statuses.set(status ?? 'none', (this.statuses.get(status ?? 'none') ?? 0) + 1);
    return status;
  }

  /** The statuses other than 200, such as `429 or 503`. */
  get refusals(): string {
    return [...this.statuses.keys()]
      .filter(status => status !== 200)
      .map(status => (status === 'none' ? 'no response' : String(status)))
      .sort()
      .join(' or ');
  }

  /** Sends batches without an acknowledgement again, as shippers do. Returns the statuses. */
  async resend(url: string, max = Number.POSITIVE_INFINITY): Promise<(number | undefined)[]> {
    const statuses: (number | undefined)[] = [];
    for (const batch of this.batches.filter(({ acknowledged }) => !acknowledged).slice(0, max))
      statuses.push(await this.send(url, batch));
    return statuses;
  }

  get acknowledgedRecords(): number {
    return this.batches.reduce((sum, { acknowledged, count }) => sum + (acknowledged ? count : 0), 0);
  }
}

function ndjsonBody(number: number, count: number, padding: number): string {
  const lines = Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      project: `p${(number + i) % 7}`,
      id: `${number}-${i}`,
      message: padding === 0 ? 'sent' : randomBytes(padding).toString('base64'),
    }),
  );
  return lines.join('\n');
}

function otlpBody(number: number, count: number): string {
  const nowMs = Date.now();
  const logRecords = Array.from({ length: count }, (_, i) => ({
    timeUnixNano: String(BigInt(nowMs) * 1_000_000n + BigInt(i) * 1_000n),
    body: text(`${number}-${i}`),
  }));
  return JSON.stringify(otlpRequest({ 'service.namespace': `p${number % 7}` }, logRecords));
}

/** Longer than any test stops the server. */
const SEND_TIMEOUT_MS = sized(30_000, 120_000);

/** Returns the status, or undefined if there was no response. */
export async function send(url: string, batch: SentBatch): Promise<number | undefined> {
  try {
    const response = await fetch(
      `${url}${batch.isOtlp ? '/v1/logs' : '/api/logs'}?source_name=${batch.kind}`,
      {
        method: 'POST',
        body: batch.body(),
        headers: {
          'X-API-KEY': PROCESS_API_KEY,
          'Content-Type': batch.isOtlp ? 'application/json' : 'application/x-ndjson',
          'Content-Encoding': batch.encoding,
        },
        // With 100 senders and 96 descriptors, a fetch of Node 20 never ended, although its connection was closed.
        signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
      },
    );
    if (response.status === 200) {
      batch.acknowledged = true;
      batch.body = () => new Uint8Array();
    }
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}
