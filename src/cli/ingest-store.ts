// Brings files into the store of a data directory: each as a whole, or not at all.
import { availableParallelism } from 'node:os';
import type { LogLines } from '../domain/log-line.ts';
import type { BodyParser } from '../intake/body-parser.ts';
import type { ParsedBody } from '../intake/parse-body.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { type IngestDestination, inOrder, type KindChunk } from './ingest-destination.ts';
import type { IngestSummary } from './ingest-tally.ts';

/** Two for each thread, so that none waits for the next. */
const PIECES_AT_ONCE = 2 * availableParallelism();

export class StoreDestination implements IngestDestination {
  readonly #store: Store;
  readonly #bodies: BodyParser;
  readonly #retentionDays: number;
  readonly #clock: Clock;

  constructor(store: Store, bodies: BodyParser, retentionDays: number, clock: Clock) {
    this.#store = store;
    this.#bodies = bodies;
    this.#retentionDays = retentionDays;
    this.#clock = clock;
  }

  load(pieces: AsyncIterable<KindChunk>, tally: IngestSummary): Promise<void> {
    return this.#store.append(this.#accepted(pieces, tally));
  }

  async close(): Promise<void> {
    await this.#bodies.close();
    await this.#store.close();
  }

  async *#accepted(pieces: AsyncIterable<KindChunk>, tally: IngestSummary): AsyncGenerator<LogLines> {
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

  async #read(piece: KindChunk): Promise<ParsedBody | undefined> {
    if (!('kind' in piece)) return undefined;
    const rules = { nowMicros: Number(this.#clock()), retentionDays: this.#retentionDays };
    const { kind, lines: bytes } = piece;
    return this.#bodies.parse({
      bytes,
      contentCoding: '',
      format: 'ndjson',
      kind,
      rules,
      isRepeatable: false,
    });
  }
}
