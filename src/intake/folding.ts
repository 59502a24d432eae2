// Carries records from the spool to the store, in order, again and again until they are there. What fails is tried again;
// nothing is left out.
import type { Clock } from '../clock.ts';
import { LOG_KINDS, type LogKind } from '../log-record.ts';
import type { Observe } from '../observe/event.ts';
import type { SpooledLines, Store } from '../store/store.ts';
import type { Timer } from '../timer.ts';
import type { Spool } from './spool.ts';
import type { Block } from './spool-block.ts';

/** How long records are gathered: many small requests are one insert. Well below the 2 s within which they are seen. */
const PAUSE_MS = 250;
const RETRY_MS = 1_000;
/** Records that no later ones make a full unit are settled all the same, so that neither memory nor spool holds them for ever. */
const SETTLE_MS = 3_600_000;
/** A busy kind's segments stay for the few records of a quiet one in them; past this the quiet one is settled. */
const MAX_SPOOL_BYTES = 512 * 1024 * 1024;

export interface FoldingParts {
  readonly spool: Spool;
  readonly store: Store;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly observe: Observe;
}

interface Run {
  readonly kind: LogKind;
  readonly first: number;
  count: number;
  readonly parts: Uint8Array[];
}

export class Folding {
  readonly #parts: FoldingParts;
  /** For each kind, the number after the last record that was told of as folded. */
  readonly #told = new Map<LogKind, number>();
  #settledAt: number;
  /** Since it last worked. */
  #failures = 0;
  #closed = false;
  #running: Promise<void> = Promise.resolve();
  #wake = () => {};

  constructor(parts: FoldingParts) {
    this.#parts = parts;
    this.#settledAt = parts.timer.now();
    for (const kind of LOG_KINDS) this.#told.set(kind, parts.store.settled(kind));
  }

  /** Folds all that is in the spool now. */
  async catchUp(): Promise<void> {
    while (this.#parts.spool.unreadBytes > 0) await this.#foldSome();
  }

  /** Resolves when what is in the spool can be seen, or the store cannot take it now; it goes on by itself. */
  async start(): Promise<void> {
    await this.catchUp().catch(error => this.#tellFailure(error));
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { spool, store } = this.#parts;
    while (!this.#closed) {
      await Promise.race([spool.more(), this.#pause(SETTLE_MS)]);
      this.#wake();
      if (this.#closed) return;
      try {
        if (spool.unreadBytes > 0) await this.#foldSome();
        await this.#settle();
        await this.#forget();
        this.#tellRecovery();
        if (spool.unreadBytes < store.foldBytes) await this.#pause(PAUSE_MS);
      } catch (error) {
        if (this.#closed) return;
        this.#tellFailure(error);
        await this.#pause(RETRY_MS);
      }
    }
  }

  async #foldSome(): Promise<void> {
    const { spool, store } = this.#parts;
    const { blocks, done } = await spool.read(store.foldBytes);
    if (blocks.length === 0) throw new Error('the spool holds a block that cannot be read any more');
    const failed = new Map<LogKind, unknown>();
    for (const lines of gather(blocks)) {
      if (failed.has(lines.kind)) continue;
      try {
        await store.fold(lines);
        this.#tell(lines);
      } catch (error) {
        failed.set(lines.kind, error); // the table of one kind may be broken, and the others take theirs
      }
    }
    for (const error of failed.values()) throw error;
    done();
  }

  /** Once of each record, though those of a round that failed half-way are given to the store again. */
  #tell({ kind, first, count }: SpooledLines): void {
    const end = first + count;
    const news = end - Math.max(first, this.#told.get(kind) ?? 0);
    if (news <= 0) return;
    this.#told.set(kind, end);
    this.#parts.observe({ type: 'records_folded', kind, count: news });
  }

  #tellFailure(error: unknown): void {
    this.#failures++;
    this.#parts.observe({ type: 'fold_failed', error });
  }

  #tellRecovery(): void {
    if (this.#failures === 0) return;
    this.#parts.observe({ type: 'fold_recovered', failures: this.#failures });
    this.#failures = 0;
  }

  async #settle(): Promise<void> {
    const { spool, store, timer } = this.#parts;
    const isDue = timer.now() - this.#settledAt >= SETTLE_MS;
    if (isDue) this.#settledAt = timer.now();
    if (isDue) await store.settle(LOG_KINDS);
    else if (spool.bytes > MAX_SPOOL_BYTES)
      await store.settle(spool.kindsInOldest(kind => store.settled(kind)));
  }

  #forget(): Promise<void> {
    const { spool, store, clock } = this.#parts;
    return spool.forget(kind => store.settled(kind), Number(clock()));
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#parts.timer.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

/** One piece for each kind and unbroken run of numbers. */
function gather(blocks: readonly Block[]): SpooledLines[] {
  const runs: Run[] = [];
  const runOf = new Map<LogKind, Run>();
  for (const { head, lines } of blocks) {
    const { kind, first, count } = head;
    const before = runOf.get(kind);
    const run =
      before !== undefined && before.first + before.count === first
        ? before
        : { kind, first, count: 0, parts: [] };
    if (run !== before) runs.push(run);
    runOf.set(kind, run);
    run.count += count;
    run.parts.push(lines);
  }
  return runs.map(({ kind, first, count, parts }) => ({ kind, first, count, lines: Buffer.concat(parts) }));
}
