// Brings files into the store of a data directory: each as a whole, or not at all.
import { availableParallelism } from 'node:os';
import type { Clock } from '../clock.ts';
import type { BodyReader } from '../intake/body-threads.ts';
import type { ReadBody } from '../intake/read-body.ts';
import type { LogLines } from '../log-line.ts';
import type { Store } from '../store/store.ts';
import { type Destination, inOrder, type KindPiece } from './ingest-destination.ts';
import type { IngestTally } from './ingest-tally.ts';

/** Two for each thread, so that none waits for the next. */
const PIECES_AT_ONCE = 2 * availableParallelism();

export class StoreDestination implements Destination {
  readonly #store: Store;
  readonly #bodies: BodyReader;
  readonly #retentionDays: number;
  readonly #clock: Clock;

  constructor(store: Store, bodies: BodyReader, retentionDays: number, clock: Clock) {
    this.#store = store;
    this.#bodies = bodies;
    this.#retentionDays = retentionDays;
    this.#clock = clock;
  }

  load(pieces: AsyncIterable<KindPiece>, tally: IngestTally): Promise<void> {
    return this.#store.append(this.#accepted(pieces, tally));
  }

  async close(): Promise<void> {
    await this.#bodies.close();
    await this.#store.close();
  }

  async *#accepted(pieces: AsyncIterable<KindPiece>, tally: IngestTally): AsyncGenerator<LogLines> {
    const read = inOrder(pieces, PIECES_AT_ONCE, async piece => ({ piece, read: await this.#read(piece) }));
    for await (const { piece, read: result } of read) {
      if (result === undefined || !('kind' in piece)) {
        if ('rejection' in piece) tally.reject(piece.rejection);
        continue;
      }
      tally.note(result.accepted, result.rejected, result.errors);
      if (result.accepted > 0) yield { kind: piece.kind, count: result.accepted, lines: result.lines };
    }
  }

  async #read(piece: KindPiece): Promise<ReadBody | undefined> {
    if (!('kind' in piece)) return undefined;
    const door = { nowMicros: Number(this.#clock()), retentionDays: this.#retentionDays };
    const { kind, lines: bytes } = piece;
    return this.#bodies.read({ bytes, coding: '', form: 'ndjson', kind, door, isRepeatable: false });
  }
}
