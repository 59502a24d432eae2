// Erases the records of a project from the file, so that no block of the file contains their text. After the affected parts were
// rewritten, the old blocks are free but still have their content, so all free blocks are overwritten.
import type { EraseScope } from '../store.ts';
import type { Checkpointer } from './checkpoint.ts';
import type { Condition } from './copy-records.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
import type { PartRewriter } from './part-rewriter.ts';
import { removeRecords } from './remove-records.ts';

/** How many blocks one statement overwrites. The file mutex is held during the statement, so flushes wait meanwhile. */
const BLOCKS_PER_STEP = 256;
/** A block holds this many numbers of 8 bytes. */
const NUMBERS_PER_BLOCK = 32_768;
/** Spare blocks, to be sure that the filler is larger than the free space: DuckDB also uses some blocks for metadata. */
const EXTRA_BLOCKS = 4;
/** DuckDB writes metadata in pieces of this size, 64 in a block. */
const METADATA_PIECE_BYTES = 4096;
const EXTRA_PIECES = 16;
const FILLER = 'logs.free_block_filler';
const DROP_FILLER_SQL = `drop table if exists ${FILLER}`;

export interface EraseDependencies {
  readonly rewriter: PartRewriter;
  /** The connection of the rewriter. Here it runs the queries that count the records of the project in each part. */
  readonly rewriteWriter: DuckDBConnection;
  readonly fileWriter: DuckDBConnection;
  readonly checkpointer: Checkpointer;
  /** No query runs longer than this. */
  readonly queryTimeoutMs: number;
}

/** Returns the number of erased records. Safe to repeat, also after it was interrupted. */
export function eraseProject(dependencies: EraseDependencies, scope: EraseScope): Promise<number> {
  const { rewriter, rewriteWriter } = dependencies;
  return rewriter.runAlone(async () => {
    const erased = await removeRecords(rewriter, rewriteWriter, toCondition(scope));
    await overwriteFreeBlocks(dependencies);
    return erased;
  });
}

/** Must be called at start: a killed process can leave the filler, and eviction would count its blocks as those of records. */
export async function dropLeftoverFiller(connection: DuckDBConnection): Promise<void> {
  await connection.run(DROP_FILLER_SQL);
}

function toCondition({ project, beforeMicros }: EraseScope): Condition {
  if (beforeMicros === undefined) return { sql: 'project = $project', values: { project } };
  const before = new DuckDBTimestampValue(beforeMicros);
  return { sql: 'project = $project and timestamp < $before', values: { project, before } };
}

/**
 * DuckDB uses all free blocks before it extends the file. So a table that is larger than all of them overwrites them. Metadata
 * contains text of records, too: the first eight bytes of the smallest and the largest text of each column segment. DuckDB stores
 * it in pieces. A long table comment, which is also metadata, overwrites the free pieces.
 */
async function overwriteFreeBlocks(dependencies: EraseDependencies): Promise<void> {
  const { fileWriter, rewriter } = dependencies;
  const run = (sql: string) => rewriter.withFileMutex(() => fileWriter.run(sql));
  const readNumber = async (sql: string) =>
    Number((await rewriter.withFileMutex(() => fileWriter.runAndReadAll(sql))).value(0, 0));
  await run(DROP_FILLER_SQL); // left by a run whose last step failed
  await run(`create table ${FILLER} (number ubigint using compression uncompressed)`);
  try {
    await checkpoint(dependencies);
    const freeBlocks = await readNumber(
      "select free_blocks from pragma_database_size() where database_name = 'logs'",
    );
    for (let left = freeBlocks + EXTRA_BLOCKS; left > 0; left -= BLOCKS_PER_STEP) {
      const numbers = Math.min(left, BLOCKS_PER_STEP) * NUMBERS_PER_BLOCK;
      await run(`insert into ${FILLER} select hash(range) from range(${numbers})`);
    }
    const freePieces = await readNumber("select sum(free_blocks) from pragma_metadata_info('logs')");
    const comment = '.'.repeat((freePieces + EXTRA_PIECES) * METADATA_PIECE_BYTES);
    await run(`comment on table ${FILLER} is '${comment}'`);
    await checkpoint(dependencies);
  } finally {
    await run(DROP_FILLER_SQL);
  }
  await checkpoint(dependencies);
}

/** While a query reads a part that was replaced, DuckDB cannot free its blocks. So this waits until all such queries have ended. */
function checkpoint({ rewriter, checkpointer, queryTimeoutMs }: EraseDependencies): Promise<void> {
  return checkpointer.runWhenIdle(work => rewriter.withFileMutex(work), 2 * queryTimeoutMs);
}
