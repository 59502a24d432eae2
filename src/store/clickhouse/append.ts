// Takes whole files in. ClickHouse knows no transaction over several blocks, so everything is read, checked and kept beside
// the spool first: what is wrong with a file is known before the first block is sent. From there on a block that fails is
// sent again for a while, under its own token.
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../../domain/errors.ts';
import type { LogKind } from '../../domain/log-columns.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { compress, type OutboxBlock } from './outbox.ts';
import { toRows } from './rows.ts';
import type { Writer } from './writer.ts';

const BLOCK_ROWS = 100_000;
const BLOCK_BYTES = 32 * 1024 * 1024;
const ATTEMPTS = 8;
const FIRST_PAUSE_MS = 250;

/** How the folders begin in which blocks wait. */
const STAGING = 'append-';

interface Batch {
  rows: number;
  bytes: number;
  parts: Uint8Array[];
}

interface StagedBlock extends Omit<OutboxBlock, 'compressed'> {
  readonly file: string;
}

export async function appendBlocks(
  writer: Writer,
  folder: string,
  batches: AsyncIterable<LogLines>,
): Promise<void> {
  const staging = await mkdtemp(join(folder, STAGING));
  try {
    const staged = await stage(staging, batches);
    for (const [index, { file, ...block }] of staged.entries()) {
      const compressed = await readFile(file);
      await insertWithRetry(writer, { ...block, compressed }).catch(error => {
        throw new OperatorError(
          `${(error as Error).message} (${index} of ${staged.length} blocks are stored)`,
        );
      });
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** What processes left that were killed. To be called by whoever holds the data directory. */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (name.startsWith(STAGING)) await rm(join(folder, name), { recursive: true, force: true });
}

async function stage(staging: string, batches: AsyncIterable<LogLines>): Promise<StagedBlock[]> {
  const staged: StagedBlock[] = [];
  const units = new Map<LogKind, Batch>();
  // The same file given twice on purpose is stored twice, as in every store: a token is of this run alone.
  const run = randomUUID();
  const write = async (kind: LogKind, { rows, parts }: Batch) => {
    units.delete(kind);
    const file = join(staging, String(staged.length));
    await writeFile(file, await compress(await toRows(Buffer.concat(parts))), { mode: 0o600 });
    staged.push({ kind, first: 0, count: rows, token: `${run} ${staged.length}`, file });
  };
  for await (const { kind, count, lines } of batches) {
    if (count === 0) continue;
    const unit = units.get(kind) ?? { rows: 0, bytes: 0, parts: [] };
    units.set(kind, unit);
    unit.rows += count;
    unit.bytes += lines.length;
    unit.parts.push(lines);
    if (unit.rows >= BLOCK_ROWS || unit.bytes >= BLOCK_BYTES) await write(kind, unit);
  }
  for (const [kind, unit] of units) await write(kind, unit);
  return staged;
}

/** About half a minute. */
async function insertWithRetry(writer: Writer, block: OutboxBlock): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await writer.insert(block);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}
