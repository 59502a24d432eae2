// Ends a server while senders, and other clients, use it.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import type { ServerProcess } from '../support/process.ts';
import { SEED } from '../support/seed.ts';
import type { BatchShape, Ledger } from './load.ts';
import { kill, serve } from './server.ts';

const random = new Random(SEED);
const SENDERS: readonly BatchShape[] = [
  { kinds: ['edge'], records: [4_000, 9_000] },
  { kinds: ['edge'], records: [1_000, 1_000] },
  { kinds: LOG_KINDS, records: [1, 20] },
  { kinds: LOG_KINDS, records: [1, 1] },
];

export interface LoadOptions {
  readonly signal: 'SIGKILL' | 'SIGTERM';
  /** The server is ended after a random time between these two. */
  readonly minMs?: number;
  readonly maxMs?: number;
  readonly senders?: readonly BatchShape[];
  /** Work besides the senders. It must finish when the server has ended. */
  readonly others?: readonly ((server: ServerProcess, signal: AbortSignal) => Promise<void>)[];
}

/** Starts a server, sends batches to it and ends it. Returns its exit code. */
export async function endUnderLoad(path: string, ledger: Ledger, options: LoadOptions) {
  const { signal, minMs = 50, maxMs = 1_000, senders = SENDERS, others = [] } = options;
  const server = await serve(path);
  try {
    // A shipper that got no response sends the same batch again. Half of these batches are not retried.
    const unacknowledged = ledger.batches.filter(batch => !batch.acknowledged && batch.number % 2 === 0);
    for (const batch of unacknowledged) expect(await ledger.send(server.internalUrl, batch)).toBe(200);
    const stop = new AbortController();
    const sending = senders.map(shape => ledger.keepSending(server.internalUrl, shape, stop.signal));
    const working = others.map(work => work(server, stop.signal));
    await sleep(minMs + random.next() * (maxMs - minMs));
    server.signal(signal);
    const { code } = await server.ended;
    stop.abort();
    await Promise.all([...sending, ...working]);
    return { code, retriedBatches: unacknowledged.length };
  } finally {
    await kill(server);
  }
}
