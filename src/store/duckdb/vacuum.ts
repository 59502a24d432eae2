// Shrinks the file. DuckDB reuses the free blocks of dropped tables, the one nearest to the start of the file first. But it
// truncates only free blocks at the end of the file. So, if the file is fragmented, vacuum takes the part that is nearest to the
// end of the file and copies its records, in the same order, into free blocks before it.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import { copyInOrder } from './copy-records.ts';
import type { DuckDBConnection } from './driver.ts';
import type { IdleKinds } from './idle-kinds.ts';
import type { PartRewriter, Rewrite } from './part-rewriter.ts';
import { nameOf, type Part, type Parts } from './parts.ts';

/** A file is fragmented if at least this share of its blocks, and at least this many of them, are free. */
const MIN_FREE_SHARE = 0.25;
const MIN_FREE_BLOCKS = 32;

export interface VacuumDependencies {
  readonly rewriter: PartRewriter;
  readonly fileWriter: DuckDBConnection;
  readonly parts: Parts;
  readonly idleKinds: IdleKinds;
}

export class Vacuum {
  readonly #dependencies: VacuumDependencies;
  /** The size of the file after a vacuum that did not shrink it. Vacuum does not run again until the size changes. */
  #stuckAtBlocks = 0;

  constructor(dependencies: VacuumDependencies) {
    this.#dependencies = dependencies;
  }

  /** Copies one part, if the file is fragmented and all kinds are idle. Returns whether there was work. */
  run(): Promise<boolean> {
    return this.#dependencies.rewriter.run(() => this.#choose());
  }

  async #choose(): Promise<Rewrite | undefined> {
    const { idleKinds, rewriter } = this.#dependencies;
    if (idleKinds.find().size < LOG_KINDS.length || rewriter.isClosing) return undefined;
    const { total, free } = await this.#countBlocks();
    const isFragmented = free >= Math.max(MIN_FREE_BLOCKS, total * MIN_FREE_SHARE);
    if (!isFragmented || total === this.#stuckAtBlocks) return undefined;
    const last = await this.#findLastPart();
    if (last === undefined || last.blocks > free) return undefined;
    const { part } = last;
    return {
      sources: [part],
      isCompacted: part.isCompacted,
      copy: (connection, to, afterBatch) => copyInOrder(connection, nameOf(part), to, afterBatch),
      onReplaced: async () => {
        const after = await this.#countBlocks();
        if (after.total >= total) this.#stuckAtBlocks = after.total;
      },
    };
  }

  /**
   * Returns the verified part whose last block is nearest to the end of the file, the id of that block, and how many blocks the
   * part has.
   */
  async #findLastPart(): Promise<{ part: Part; lastBlock: number; blocks: number } | undefined> {
    let last: { part: Part; lastBlock: number; blocks: number } | undefined;
    for (const part of this.#dependencies.parts.listAll()) {
      if (part.unverified !== undefined) continue;
      const [lastBlock = 0, blocks = 0] = await this.#readNumbers(
        `select max(block), count(distinct block)
        from (select unnest(list_prepend(block_id, additional_block_ids)) as block from pragma_storage_info('${nameOf(part)}'))`,
      );
      if (last === undefined || lastBlock > last.lastBlock) last = { part, lastBlock, blocks };
    }
    return last;
  }

  async #countBlocks(): Promise<{ total: number; free: number }> {
    const [total = 0, free = 0] = await this.#readNumbers(
      "select total_blocks, free_blocks from pragma_database_size() where database_name = 'logs'",
    );
    return { total, free };
  }

  async #readNumbers(sql: string): Promise<readonly number[]> {
    return (await this.#dependencies.fileWriter.runAndReadAll(sql)).getRows()[0]?.map(Number) ?? [];
  }
}
