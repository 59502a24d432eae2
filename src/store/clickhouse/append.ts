// Loads whole files into ClickHouse. ClickHouse has no transaction over several blocks, so all blocks are staged in the
// data directory first: an error in a file is found before the first insert. A failed insert is retried with the same
// insert deduplication token.
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isProgrammingError, OperatorError } from '../../domain/errors.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { batchLines } from '../batch-lines.ts';
import type { OutboxBlock } from './outbox.ts';
import { compress, toRows } from './rows.ts';
import type { Writer } from './writer.ts';

const MAX_BLOCK_ROWS = 100_000;
const MAX_BLOCK_BYTES = 32 * 1024 * 1024;
/** The doubling pauses between eight attempts add up to about half a minute. */
const MAX_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 250;

/** Prefix of the directories with staged blocks. */
const STAGING_PREFIX = 'append-';

interface StagedBlock extends Omit<OutboxBlock, 'first' | 'compressed'> {
  readonly file: string;
}

export async function appendBlocks(
  writer: Writer,
  directory: string,
  batches: AsyncIterable<LogLines>,
): Promise<void> {
  const staging = await mkdtemp(join(directory, STAGING_PREFIX));
  try {
    const blocks = await stageBlocks(staging, batches);
    for (const [index, { file, ...block }] of blocks.entries()) {
      const compressed = await readFile(file);
      await insertWithRetry(writer, { ...block, compressed }).catch(error => {
        if (isProgrammingError(error)) throw error;
        throw new OperatorError(
          `${(error as Error).message} (${index} of ${blocks.length} blocks are stored)`,
        );
      });
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Removes what killed processes left behind. The caller must hold the lock of the data directory. */
export async function removeStagedBlocks(directory: string): Promise<void> {
  for (const name of await readdir(directory))
    if (name.startsWith(STAGING_PREFIX)) await rm(join(directory, name), { recursive: true, force: true });
}

async function stageBlocks(staging: string, batches: AsyncIterable<LogLines>): Promise<StagedBlock[]> {
  const blocks: StagedBlock[] = [];
  // The deduplication tokens are unique to this run, so a file that is loaded twice is stored twice.
  const runId = randomUUID();
  for await (const { kind, count, chunks } of batchLines(batches, MAX_BLOCK_ROWS, MAX_BLOCK_BYTES)) {
    const file = join(staging, String(blocks.length));
    await writeFile(file, await compress(await toRows(Buffer.concat(chunks))), { mode: 0o600 });
    blocks.push({ kind, count, token: `${runId} ${blocks.length}`, file });
  }
  return blocks;
}

async function insertWithRetry(writer: Writer, block: Omit<OutboxBlock, 'first'>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await writer.insert(block);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || isProgrammingError(error)) throw error;
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}
