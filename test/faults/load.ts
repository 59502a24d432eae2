// Senders that keep a running server busy, and the account of what it was told to keep.
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { PROCESS_API_KEY } from '../support/process.ts';

export interface SentBatch {
  readonly number: number;
  readonly kind: LogKind;
  readonly count: number;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Answered with 200: it must be there once. Any other is there once or not at all. */
  acknowledged: boolean;
}

export interface Shape {
  readonly kinds: readonly LogKind[];
  /** How many records a batch has, at least and at most. */
  readonly records: readonly [number, number];
  /** Random bytes in each record, so that it cannot be compressed. */
  readonly padding?: number;
}

export class Ledger {
  readonly batches: SentBatch[] = [];

  make({ kinds, records: [least, most], padding = 0 }: Shape): SentBatch {
    const number = this.batches.length;
    const kind = kinds[number % kinds.length] ?? 'edge';
    const count = least + Math.floor(Math.random() * (most - least + 1));
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

  /** Sends until the signal aborts or the server is gone. */
  async sendOn(url: string, shape: Shape, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await send(url, this.make(shape))) !== undefined);
  }

  get acknowledgedRecords(): number {
    return this.batches.reduce((sum, { acknowledged, count }) => sum + (acknowledged ? count : 0), 0);
  }
}

/** The status, or undefined where there was no answer. */
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
