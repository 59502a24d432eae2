// Senders that keep a running server busy, and a ledger of the batches that they sent.
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { PROCESS_API_KEY } from '../support/process.ts';

export interface SentBatch {
  readonly number: number;
  readonly kind: LogKind;
  readonly count: number;
  readonly body: Uint8Array<ArrayBuffer>;
  /** The response was 200, so it must be stored once. Any other batch must be stored once or not at all. */
  acknowledged: boolean;
}

export interface BatchShape {
  readonly kinds: readonly LogKind[];
  /** Minimum and maximum number of records in a batch. */
  readonly records: readonly [number, number];
  /** Random bytes in each record, so that it does not compress. */
  readonly padding?: number;
}

export class Ledger {
  readonly batches: SentBatch[] = [];

  createBatch({ kinds, records: [min, max], padding = 0 }: BatchShape): SentBatch {
    const number = this.batches.length;
    const kind = kinds[number % kinds.length] ?? 'edge';
    const count = min + Math.floor(Math.random() * (max - min + 1));
    const lines = Array.from({ length: count }, (_, i) =>
      JSON.stringify({
        project: `p${(number + i) % 7}`,
        id: `${number}-${i}`,
        message: padding === 0 ? 'sent' : randomBytes(padding).toString('base64'),
      }),
    );
    const batch = {
      number,
      kind,
      count,
      body: gzipSync(lines.join('\n'), { level: 1 }),
      acknowledged: false,
    };
    this.batches.push(batch);
    return batch;
  }

  /** Sends batches until the signal aborts or the server does not respond. */
  async keepSending(url: string, shape: BatchShape, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await send(url, this.createBatch(shape))) !== undefined);
  }

  get acknowledgedRecords(): number {
    return this.batches.reduce((sum, { acknowledged, count }) => sum + (acknowledged ? count : 0), 0);
  }
}

/** Returns the status, or undefined if there was no response. */
export async function send(url: string, batch: SentBatch): Promise<number | undefined> {
  try {
    const response = await fetch(`${url}/api/logs?source_name=${batch.kind}`, {
      method: 'POST',
      body: batch.body,
      headers: {
        'X-API-KEY': PROCESS_API_KEY,
        'Content-Type': 'application/x-ndjson',
        'Content-Encoding': 'gzip',
      },
    });
    if (response.status === 200) batch.acknowledged = true;
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}
