// Blocks of records on their way to ClickHouse, frozen on disk before they are sent for the first time. A block that is sent
// again, after a lost answer or a crash, is the same to the byte and carries the same token, so ClickHouse knows it. Beside
// the blocks stands how far each kind has come: what is written there, ClickHouse has acknowledged.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { createDirectory, writeFileDurably } from '../../system/files.ts';
import type { SpooledLines } from '../store.ts';
import { toRows } from './rows.ts';

export interface OutboxBlock {
  readonly kind: LogKind;
  readonly first: number;
  readonly count: number;
  /** Of the spool, the numbers and the content: no other block has it. */
  readonly token: string;
  /** Rows (rows.ts), compressed. */
  readonly compressed: Uint8Array;
}

interface Progress {
  /** Tells this spool from those of other processes. */
  readonly spool: string;
  readonly settled: Partial<Record<LogKind, number>>;
}

const NEWLINE = 0x0a;
const FAST = { level: constants.Z_BEST_SPEED };

export class Outbox {
  readonly #folder: string;
  #progress: Progress;
  readonly #pending = new Map<LogKind, OutboxBlock>();

  private constructor(folder: string, progress: Progress) {
    this.#folder = folder;
    this.#progress = progress;
  }

  /** To be called by whoever holds the data directory. */
  static async open(folder: string): Promise<Outbox> {
    createDirectory(folder);
    const file = join(folder, 'progress.json');
    const isThere = existsSync(file);
    const progress: Progress = isThere
      ? JSON.parse(readFileSync(file, 'utf8'))
      : { spool: randomUUID(), settled: {} };
    const blocks = new Outbox(folder, progress);
    if (!isThere) await blocks.#writeProgress(progress);
    for (const kind of LOG_KINDS) {
      const block = readBlock(blocks.#fileOf(kind));
      // One that was acknowledged just before the process ended is told by its numbers.
      if (block !== undefined && block.first + block.count > blocks.acknowledgedUpTo(kind))
        blocks.#pending.set(kind, block);
    }
    return blocks;
  }

  acknowledgedUpTo(kind: LogKind): number {
    return this.#progress.settled[kind] ?? 0;
  }

  /** The number after the last record that was settled or stands in a frozen block. */
  queuedUpTo(kind: LogKind): number {
    const block = this.#pending.get(kind);
    return Math.max(this.acknowledgedUpTo(kind), block === undefined ? 0 : block.first + block.count);
  }

  /** The block that was frozen and not acknowledged. */
  pending(kind: LogKind): OutboxBlock | undefined {
    return this.#pending.get(kind);
  }

  /** One block of a kind at a time: the one before has to be settled. */
  async add({ kind, firstSequence, count, lines }: SpooledLines): Promise<OutboxBlock> {
    const token = createHash('sha256')
      .update(`${this.#progress.spool} ${kind} ${firstSequence} ${count}\n`)
      .update(lines)
      .digest('hex');
    const compressed = await compress(await toRows(lines));
    const head = Buffer.from(`${JSON.stringify({ kind, first: firstSequence, count, token })}\n`);
    await writeFileDurably(this.#fileOf(kind), Buffer.concat([head, compressed]));
    const block = { kind, first: firstSequence, count, token, compressed };
    this.#pending.set(kind, block);
    return block;
  }

  /** ClickHouse has acknowledged it. */
  async acknowledge({ kind, first, count }: OutboxBlock): Promise<void> {
    const settled = { ...this.#progress.settled, [kind]: first + count };
    await this.#writeProgress({ ...this.#progress, settled });
    this.#pending.delete(kind);
    await rm(this.#fileOf(kind), { force: true });
  }

  /** Records up to these numbers came to ClickHouse by another way. */
  async skipTo(end: (kind: LogKind) => number): Promise<void> {
    const ends = LOG_KINDS.map(kind => [kind, Math.max(this.acknowledgedUpTo(kind), end(kind))]);
    await this.#writeProgress({ ...this.#progress, settled: Object.fromEntries(ends) });
  }

  async #writeProgress(progress: Progress): Promise<void> {
    await writeFileDurably(join(this.#folder, 'progress.json'), JSON.stringify(progress));
    this.#progress = progress; // only now may the spool forget
  }

  #fileOf(kind: LogKind): string {
    return join(this.#folder, `${kind}.block`);
  }
}

export function compress(rows: Uint8Array): Promise<Buffer> {
  return promisify(gzip)(rows, FAST);
}

function readBlock(file: string): OutboxBlock | undefined {
  if (!existsSync(file)) return undefined;
  const bytes = readFileSync(file);
  const headEnd = bytes.indexOf(NEWLINE);
  const head = JSON.parse(bytes.toString('utf8', 0, headEnd)) as Omit<OutboxBlock, 'compressed'>;
  return { ...head, compressed: bytes.subarray(headEnd + 1) };
}
