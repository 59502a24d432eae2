// Takes whole files in. ClickHouse knows no transaction over several blocks, so everything is read, checked and kept beside
// the spool first: what is wrong with a file is known before the first block is sent. From there on a block that fails is
// sent again for a while, under its own token.
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../../domain/errors.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { batchLines } from '../batch-lines.ts';
import { compress, type OutboxBlock } from './outbox.ts';
import { toRows } from './rows.ts';
import type { Writer } from './writer.ts';

const BLOCK_ROWS = 100_000;
const BLOCK_BYTES = 32 * 1024 * 1024;
const ATTEMPTS = 8;
const FIRST_PAUSE_MS = 250;

/** How the folders begin in which blocks wait. */
const STAGING = 'append-';

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
  // Loading the same file twice on purpose stores it twice, as in every store: a token is unique to this run.
  const run = randomUUID();
  for await (const { kind, count, chunks } of batchLines(batches, BLOCK_ROWS, BLOCK_BYTES)) {
    const file = join(staging, String(staged.length));
    await writeFile(file, await compress(await toRows(Buffer.concat(chunks))), { mode: 0o600 });
    staged.push({ kind, first: 0, count, token: `${run} ${staged.length}`, file });
  }
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
