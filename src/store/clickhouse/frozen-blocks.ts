// Blocks of records on their way to ClickHouse, frozen on disk before they are sent for the first time. A block that is sent
// again, after a lost answer or a crash, is the same to the byte and carries the same token, so ClickHouse knows it. Beside
// the blocks stands how far each kind has come: what is written there, ClickHouse has acknowledged.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { writeDurably } from '../../durable-file.ts';
import { makeFolder } from '../../folder.ts';
import { LOG_KINDS, type LogKind } from '../../log-record.ts';
import type { SpooledLines } from '../store.ts';
import { toRows } from './rows.ts';

export interface FrozenBlock {
  readonly kind: LogKind;
  readonly first: number;
  readonly count: number;
  /** Of the spool, the numbers and the content: no other block has it. */
  readonly token: string;
  /** Rows (rows.ts), compressed. */
  readonly packed: Uint8Array;
}

interface Progress {
  /** Tells this spool from those of other processes. */
  readonly spool: string;
  readonly settled: Partial<Record<LogKind, number>>;
}

const NEWLINE = 0x0a;
const FAST = { level: constants.Z_BEST_SPEED };

export class FrozenBlocks {
  readonly #folder: string;
  #progress: Progress;
  readonly #waiting = new Map<LogKind, FrozenBlock>();

  private constructor(folder: string, progress: Progress) {
    this.#folder = folder;
    this.#progress = progress;
  }

  /** To be called by whoever holds the data directory. */
  static async open(folder: string): Promise<FrozenBlocks> {
    makeFolder(folder);
    const file = join(folder, 'progress.json');
    const isThere = existsSync(file);
    const progress: Progress = isThere
      ? JSON.parse(readFileSync(file, 'utf8'))
      : { spool: randomUUID(), settled: {} };
    const blocks = new FrozenBlocks(folder, progress);
    if (!isThere) await blocks.#writeProgress(progress);
    for (const kind of LOG_KINDS) {
      const block = readBlock(blocks.#fileOf(kind));
      // One that was acknowledged just before the process ended is told by its numbers.
      if (block !== undefined && block.first + block.count > blocks.settled(kind))
        blocks.#waiting.set(kind, block);
    }
    return blocks;
  }

  settled(kind: LogKind): number {
    return this.#progress.settled[kind] ?? 0;
  }

  /** The number after the last record that was settled or stands in a frozen block. */
  reached(kind: LogKind): number {
    const block = this.#waiting.get(kind);
    return Math.max(this.settled(kind), block === undefined ? 0 : block.first + block.count);
  }

  /** The block that was frozen and not acknowledged. */
  waiting(kind: LogKind): FrozenBlock | undefined {
    return this.#waiting.get(kind);
  }

  /** One block of a kind at a time: the one before has to be settled. */
  async freeze({ kind, first, count, lines }: SpooledLines): Promise<FrozenBlock> {
    const token = createHash('sha256')
      .update(`${this.#progress.spool} ${kind} ${first} ${count}\n`)
      .update(lines)
      .digest('hex');
    const packed = await pack(await toRows(lines));
    const head = Buffer.from(`${JSON.stringify({ kind, first, count, token })}\n`);
    await writeDurably(this.#fileOf(kind), Buffer.concat([head, packed]));
    const block = { kind, first, count, token, packed };
    this.#waiting.set(kind, block);
    return block;
  }

  /** ClickHouse has acknowledged it. */
  async settle({ kind, first, count }: FrozenBlock): Promise<void> {
    const settled = { ...this.#progress.settled, [kind]: first + count };
    await this.#writeProgress({ ...this.#progress, settled });
    this.#waiting.delete(kind);
    await rm(this.#fileOf(kind), { force: true });
  }

  /** Records up to these numbers came to ClickHouse by another way. */
  async passOver(end: (kind: LogKind) => number): Promise<void> {
    const ends = LOG_KINDS.map(kind => [kind, Math.max(this.settled(kind), end(kind))]);
    await this.#writeProgress({ ...this.#progress, settled: Object.fromEntries(ends) });
  }

  async #writeProgress(progress: Progress): Promise<void> {
    await writeDurably(join(this.#folder, 'progress.json'), JSON.stringify(progress));
    this.#progress = progress; // only now may the spool forget
  }

  #fileOf(kind: LogKind): string {
    return join(this.#folder, `${kind}.block`);
  }
}

export function pack(rows: Uint8Array): Promise<Buffer> {
  return promisify(gzip)(rows, FAST);
}

function readBlock(file: string): FrozenBlock | undefined {
  if (!existsSync(file)) return undefined;
  const bytes = readFileSync(file);
  const headEnd = bytes.indexOf(NEWLINE);
  const head = JSON.parse(bytes.toString('utf8', 0, headEnd)) as Omit<FrozenBlock, 'packed'>;
  return { ...head, packed: bytes.subarray(headEnd + 1) };
}
