// A transactional outbox: blocks of rows for ClickHouse, durable on disk before they are sent for the first time. A block
// that is sent again, after a lost response or a crash, has the same bytes and the same insert deduplication token, so
// ClickHouse skips it. The outbox also stores up to which sequence number ClickHouse has acknowledged each kind.
// writer.ts sends the blocks.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { OperatorError } from '../../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { createDirectory, writeFileDurably } from '../../system/files.ts';
import { bufferFile, type TarFile } from '../../system/tar.ts';
import type { SpooledLines, StoreContent } from '../store.ts';
import { compress, decompress, toRows } from './rows.ts';

/** The header line of a `<kind>.block` file. These names are an on-disk format. */
interface BlockHeader {
  readonly kind: LogKind;
  /** Sequence number of the first record. */
  readonly first: number;
  readonly count: number;
  /** The insert deduplication token: a hash of the outbox's id, the kind, the sequence numbers and the content. */
  readonly token: string;
}

export interface OutboxBlock extends BlockHeader {
  /** Compressed rows (rows.ts). */
  readonly compressed: Uint8Array;
}

/** The sequence number after the last acknowledged record of each kind. */
type Acknowledged = Readonly<Partial<Record<LogKind, number>>>;

/** The content of progress.json. `spool` and `settled` are on-disk names. */
interface Progress {
  /**
   * The id of the outbox: random, created once. Other Dendro servers that insert into the same ClickHouse have another id,
   * so their blocks have different tokens.
   */
  readonly spool: string;
  readonly settled: Acknowledged;
}

const PROGRESS_FILE = 'progress.json';
const NEWLINE = 0x0a;

/** Calls of `acknowledge` and `skipTo` must not overlap: they write one progress file for all kinds. */
export class Outbox {
  readonly #directory: string;
  readonly #outboxId: string;
  #acknowledged: Acknowledged;
  readonly #pending = new Map<LogKind, OutboxBlock>();

  private constructor(directory: string, { spool, settled }: Progress) {
    this.#directory = directory;
    this.#outboxId = spool;
    this.#acknowledged = settled;
  }

  /** Creates the outbox if there is none, and deletes what a crash left. The caller must hold the lock of the data directory. */
  static async open(directory: string): Promise<Outbox> {
    createDirectory(directory);
    if (!existsSync(join(directory, PROGRESS_FILE)))
      await new Outbox(directory, { spool: randomUUID(), settled: {} }).#writeAcknowledged({});
    const outbox = await Outbox.read(directory);
    await outbox.#deleteLeftovers();
    return outbox;
  }

  /**
   * Reads every record of an existing outbox and changes nothing on disk. Nobody may write to it meanwhile. Throws OperatorError if a
   * file is damaged.
   */
  static async read(directory: string): Promise<Outbox> {
    const outbox = new Outbox(directory, readProgress(join(directory, PROGRESS_FILE)));
    for (const kind of LOG_KINDS) {
      const file = outbox.#blockFile(kind);
      if (!existsSync(file)) continue;
      const block = decodeBlock(file);
      if (endOf(block) <= outbox.acknowledgedUpTo(kind)) continue;
      await verifyBlock(file, block);
      outbox.#pending.set(kind, block);
    }
    return outbox;
  }

  /** ClickHouse has acknowledged the records up to this sequence number (exclusive). */
  acknowledgedUpTo(kind: LogKind): number {
    return this.#acknowledged[kind] ?? 0;
  }

  /** Records up to this sequence number (exclusive) are acknowledged or in the pending block. */
  durableUpTo(kind: LogKind): number {
    const block = this.#pending.get(kind);
    return Math.max(this.acknowledgedUpTo(kind), block === undefined ? 0 : endOf(block));
  }

  /** The block that was added and not yet acknowledged. */
  pending(kind: LogKind): OutboxBlock | undefined {
    return this.#pending.get(kind);
  }

  /** Records in all pending blocks. */
  get pendingRecords(): number {
    return [...this.#pending.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** At this moment. A kind has at most one pending block. */
  get content(): StoreContent {
    const durable = new Map(LOG_KINDS.map(kind => [kind, this.durableUpTo(kind)]));
    return {
      records: new Map(LOG_KINDS.map(kind => [kind, this.#pending.get(kind)?.count ?? 0])),
      durableUpTo: kind => durable.get(kind) ?? 0,
    };
  }

  /** The content of the outbox's files at this moment. */
  snapshot(): readonly TarFile[] {
    const progress: Progress = { spool: this.#outboxId, settled: this.#acknowledged };
    const toPath = (file: string) => `${basename(this.#directory)}/${basename(file)}`;
    return [
      bufferFile(toPath(PROGRESS_FILE), JSON.stringify(progress)),
      ...[...this.#pending.values()].map(block =>
        bufferFile(toPath(this.#blockFile(block.kind)), encodeBlock(block)),
      ),
    ];
  }

  /** Writes a block durably. A kind has at most one pending block: acknowledge the previous one first. */
  async add({ kind, firstSequence, count, lines }: SpooledLines): Promise<OutboxBlock> {
    const token = createHash('sha256')
      .update(`${this.#outboxId} ${kind} ${firstSequence} ${count}\n`)
      .update(lines)
      .digest('hex');
    const compressed = await compress(await toRows(lines));
    const header: BlockHeader = { kind, first: firstSequence, count, token };
    const block = { ...header, compressed };
    await writeFileDurably(this.#blockFile(kind), encodeBlock(block));
    this.#pending.set(kind, block);
    return block;
  }

  /** Saves that ClickHouse has acknowledged the block, then deletes the block. */
  async acknowledge(block: OutboxBlock): Promise<void> {
    await this.#writeAcknowledged({ ...this.#acknowledged, [block.kind]: endOf(block) });
    await rm(this.#blockFile(block.kind), { force: true });
  }

  /** Marks records up to these sequence numbers as acknowledged: `dendro migrate` has copied them to ClickHouse. */
  async skipTo(endOfKind: (kind: LogKind) => number): Promise<void> {
    const ends = LOG_KINDS.map(kind => [kind, Math.max(this.acknowledgedUpTo(kind), endOfKind(kind))]);
    await this.#writeAcknowledged(Object.fromEntries(ends));
  }

  async #deleteLeftovers(): Promise<void> {
    for (const kind of LOG_KINDS) {
      const file = this.#blockFile(kind);
      // After a crash between the two steps of `acknowledge` the file of an acknowledged block still exists.
      if (!this.#pending.has(kind)) await rm(file, { force: true });
      await rm(`${file}.new`, { force: true }); // of an interrupted write
    }
  }

  async #writeAcknowledged(acknowledged: Acknowledged): Promise<void> {
    const progress: Progress = { spool: this.#outboxId, settled: acknowledged };
    await writeFileDurably(join(this.#directory, PROGRESS_FILE), JSON.stringify(progress));
    this.#acknowledged = acknowledged; // after the write: the spool deletes records up to these sequence numbers
    for (const [kind, block] of this.#pending)
      if (endOf(block) <= this.acknowledgedUpTo(kind)) this.#pending.delete(kind);
  }

  #blockFile(kind: LogKind): string {
    return join(this.#directory, `${kind}.block`);
  }
}

/** The sequence number after the last record of a block. */
function endOf({ first, count }: BlockHeader): number {
  return first + count;
}

function encodeBlock({ compressed, ...header }: OutboxBlock): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), compressed]);
}

function readProgress(file: string): Progress {
  try {
    const progress = JSON.parse(readFileSync(file, 'utf8')) as Progress | null;
    if (typeof progress?.spool !== 'string' || typeof progress.settled !== 'object')
      throw new Error('spool or settled is missing');
    return progress;
  } catch (error) {
    throw damaged(
      file,
      (error as Error).message,
      'If you delete it instead, records that are still in the spool can be stored in ClickHouse twice',
    );
  }
}

function decodeBlock(file: string): OutboxBlock {
  const bytes = readFileSync(file);
  const headerEnd = bytes.indexOf(NEWLINE);
  try {
    const header = JSON.parse(bytes.toString('utf8', 0, headerEnd)) as BlockHeader;
    return { ...header, compressed: bytes.subarray(headerEnd + 1) };
  } catch (error) {
    throw damagedBlock(file, (error as Error).message);
  }
}

/** ClickHouse would refuse a damaged block at every attempt. */
async function verifyBlock(file: string, { count, compressed }: OutboxBlock): Promise<void> {
  const rows = await decompress(compressed).catch(error => {
    throw damagedBlock(file, error.message);
  });
  const found = rows.reduce((lines, byte) => (byte === NEWLINE ? lines + 1 : lines), 0);
  if (found !== count) throw damagedBlock(file, `it has ${found} records instead of ${count}`);
}

function damagedBlock(file: string, problem: string): OperatorError {
  return damaged(
    file,
    problem,
    'If you delete it instead, its records are sent again from the spool; if ClickHouse has them already, they are stored twice',
  );
}

function damaged(file: string, problem: string, alternative: string): OperatorError {
  return new OperatorError(`${file} is damaged: ${problem}. Restore it from a backup. ${alternative}`);
}
