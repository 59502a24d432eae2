// Keeps a project's records together. A seal sorts what came in together; a project that writes little has a few records in
// each of very many row groups then, and reading them costs what all of these cost. Merging makes one table of many, sorted
// as a whole, in which a project lies in one place.
//
// What is asked of all projects at once is asked of the last hour or the last seven days. So records stay in the order of
// time for a week, but where half of it is too much to leave unmerged; what is older is merged with all that is.
//
// DuckDB uses the space of dropped tables again, the first in the file first, but gives back only what lies at its end. So a
// file that is loose after merging is made tight by laying the table at its end once more, as it lies, where it fits into what is
// free before it.
//
// A merge fills a table that nobody sees, in slices with a rest after each while others work, then drops what it was made of
// and shows it, in one transaction. Seals go to another table meanwhile. What was filled when the process ended is dropped
// at the next start.
import { setTimeout as sleep } from 'node:timers/promises';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_DAY } from '../../system/clock.ts';
import type { Mutex } from '../../system/mutex.ts';
import type { Checkpointer } from './checkpoint.ts';
import { copyInOrder } from './copy-in-order.ts';
import { copySorted } from './copy-sorted.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
import { nameOf, type Part, type Parts, ROW_GROUP_ROWS } from './parts.ts';

/** Places where a project may lie: so many become one when nothing has come in for a while, and so many in any case. */
const ENOUGH_PLACES = 2;
const TOO_MANY_PLACES = 16;
const QUIET_MS = 30_000;
/** Younger tables are merged only where they reach over less time than this. */
const RECENT_MICROS = 7n * MICROS_PER_DAY;
const MAX_RECENT_SPAN = RECENT_MICROS / 2n;
/** No table gets larger by merging: it would never end. */
const MAX_MERGED_ROWS = 128 * ROW_GROUP_ROWS;
/** A table is merged with newer ones while it has at most so many times their rows: so none is rewritten for little. */
const MAX_RATIO = 4;
/** So much of the file may be free. */
const MAX_LOOSENESS = 0.25;
const LEAST_LOOSE_BLOCKS = 32;
/** What a record takes is told by so many from the middle of each table. */
const SAMPLE_ROWS = 1000;
const OTHER_COLUMNS_BYTES = 200;

export interface CompactorDependencies {
  /** Its own: filling a table takes long, and seals go on. */
  readonly filler: DuckDBConnection;
  readonly fileWriter: DuckDBConnection;
  readonly fileMutex: Mutex;
  readonly parts: Parts;
  readonly checkpoints: Checkpointer;
  /** Throws where the disk has no room for so many rows once more. */
  readonly requireDiskSpace: (rows: number) => Promise<void>;
  /** How many queries and folds there were so far. */
  readonly countOperations: () => number;
}

/** From when to when most of its records are. */
export interface TimedPart {
  readonly part: Part;
  readonly since: bigint;
  readonly until: bigint;
}

/** What is to be laid anew. */
interface Chosen {
  readonly tables: readonly Part[];
  /** As one table, sorted as a whole; otherwise as it lies. */
  readonly merges: boolean;
}

const NOTHING: Chosen = { tables: [], merges: false };

export class Compactor {
  readonly #dependencies: CompactorDependencies;
  readonly #quietSince = new Map<LogKind, { readonly rows: number; readonly at: number }>();
  #running: Promise<unknown> | undefined;
  #isStopping = false;
  /** Of the file, before a table was laid once more; and after, where it was not shorter then: not tried again until it changes. */
  #looseBlocks = 0;
  #hopelessBlocks = 0;

  constructor(parts: CompactorDependencies) {
    this.#dependencies = parts;
  }

  /** Merges tables of one kind, where there are enough of them. Answers whether there were. One at a time. */
  async compactNext(nowMicros: bigint): Promise<boolean> {
    const chosen = await this.#dependencies.fileMutex.run(() => this.#choose(nowMicros));
    if (chosen.tables.length === 0) return false;
    const merging = this.#lay(chosen).finally(() => this.#dependencies.parts.reserve([]));
    this.#running = merging.catch(() => {});
    await merging;
    return true;
  }

  /** A merge that runs is cut short. */
  async close(): Promise<void> {
    this.#isStopping = true;
    this.#dependencies.filler.interrupt();
    await this.#running;
  }

  async #choose(nowMicros: bigint): Promise<Chosen> {
    const chosen = await this.#chooseAny(nowMicros);
    this.#dependencies.parts.reserve(chosen.tables);
    return chosen;
  }

  async #chooseAny(nowMicros: bigint): Promise<Chosen> {
    const { parts } = this.#dependencies;
    const quiet = LOG_KINDS.filter(kind => this.#isQuiet(kind));
    for (const kind of LOG_KINDS) {
      const tables = parts.list(kind);
      const enough = quiet.includes(kind) ? ENOUGH_PLACES : TOO_MANY_PLACES;
      if (this.#isStopping || countPlaces(tables) < enough) continue;
      const chosen = chooseTables(await this.#findTimes(tables), nowMicros - RECENT_MICROS, enough);
      if (chosen.length > 0) return { tables: chosen, merges: true };
    }
    return this.#isStopping || quiet.length < LOG_KINDS.length ? NOTHING : this.#chooseLast();
  }

  /** Where the file is loose, the table that its end belongs to, if it fits into what is free. */
  async #chooseLast(): Promise<Chosen> {
    const { total, free } = await this.#countBlocks();
    if (free < Math.max(LEAST_LOOSE_BLOCKS, total * MAX_LOOSENESS) || total === this.#hopelessBlocks)
      return NOTHING;
    let last: { table: Part; end: number; blocks: number } | undefined;
    for (const table of LOG_KINDS.flatMap(kind => this.#dependencies.parts.list(kind))) {
      const [end = 0, blocks = 0] = await this.#readNumbers(
        `select max(block), count(distinct block)
        from (select unnest(list_prepend(block_id, additional_block_ids)) as block from pragma_storage_info('${nameOf(table)}'))`,
      );
      if (last === undefined || end > last.end) last = { table, end, blocks };
    }
    if (last === undefined || last.blocks > free) return NOTHING;
    this.#looseBlocks = total;
    return { tables: [last.table], merges: false };
  }

  async #countBlocks(): Promise<{ total: number; free: number }> {
    const [total = 0, free = 0] = await this.#readNumbers(
      `select total_blocks, free_blocks from pragma_database_size() where database_name = 'logs'`,
    );
    return { total, free };
  }

  async #readNumbers(sql: string): Promise<readonly number[]> {
    return (await this.#dependencies.fileWriter.runAndReadAll(sql)).getRows()[0]?.map(Number) ?? [];
  }

  /** A table begins where the one before it ends: a few records may come late by weeks. */
  async #findTimes(tables: readonly Part[]): Promise<TimedPart[]> {
    const timed: TimedPart[] = [];
    for (const table of tables) {
      const reader = await this.#dependencies.fileWriter.runAndReadAll(
        `select max(timestamp) from ${nameOf(table)}`,
      );
      const newest = reader.value(0, 0);
      const until = newest instanceof DuckDBTimestampValue ? newest.micros : 0n;
      timed.push({ part: table, since: timed.at(-1)?.until ?? 0n, until });
    }
    return timed;
  }

  #isQuiet(kind: LogKind): boolean {
    const rows = this.#dependencies.parts.list(kind).reduce((sum, table) => sum + table.rows, 0);
    const known = this.#quietSince.get(kind);
    if (known?.rows === rows) return performance.now() - known.at >= QUIET_MS;
    this.#quietSince.set(kind, { rows, at: performance.now() });
    return false;
  }

  async #lay({ tables, merges }: Chosen): Promise<void> {
    const { fileWriter, fileMutex, parts, checkpoints, requireDiskSpace } = this.#dependencies;
    const last = tables.at(-1);
    if (last === undefined) return;
    const { kind, number } = last;
    const filled = `${kind}_merging_${number}`;
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    await requireDiskSpace(rows);
    try {
      await fileMutex.run(() => parts.create(kind, `logs.${filled}`));
      const copied = await this.#fill(`logs.${filled}`, { tables, merges }, last);
      if (copied !== rows) throw new Error(`${copied} of ${rows} records were copied`);
      const laid = { kind, number, isCompacted: merges || last.isCompacted, rows };
      await fileMutex.run(async () => {
        await parts.transaction(async () => {
          await parts.replace(tables, laid);
          await fileWriter.run(`alter table logs.${filled} rename to ${nameOf(laid).replace('logs.', '')}`);
        });
        await checkpoints.run();
        const { total } = await this.#countBlocks();
        if (!merges && total >= this.#looseBlocks) this.#hopelessBlocks = total;
      });
    } catch (error) {
      await fileMutex.run(() => fileWriter.run(`drop table if exists logs.${filled}`)).catch(() => {});
      throw error;
    }
  }

  /** In one transaction, so that row groups are filled whole. */
  async #fill(to: string, { tables, merges }: Chosen, last: Part): Promise<number> {
    const { filler, countOperations } = this.#dependencies;
    let calls = countOperations();
    const parts = tables.map(table => `from ${nameOf(table)}`).join(' union all ');
    const rest = async (ms: number) => {
      if (countOperations() !== calls && !this.#isStopping) await sleep(ms, undefined, { ref: false });
      calls = countOperations();
      if (this.#isStopping) throw new Error('the store is closed');
    };
    await filler.run('begin transaction');
    try {
      const copied = merges
        ? await copySorted(filler, `(${parts})`, to, await this.#recordBytes(tables), rest)
        : await copyInOrder(filler, nameOf(last), to, rest);
      await filler.run('commit');
      return copied;
    } catch (error) {
      await filler.run('rollback').catch(() => {}); // the first error counts
      throw error;
    }
  }

  async #recordBytes(tables: readonly Part[]): Promise<number> {
    const samples = tables.map(table => {
      const middle = Math.floor(table.rows / 2);
      return `select event_message, metadata from ${nameOf(table)} where rowid between ${middle} and ${middle + SAMPLE_ROWS}`;
    });
    const reader = await this.#dependencies.filler.runAndReadAll(
      `select avg(strlen(event_message) + strlen(metadata)) from (${samples.join(' union all ')})`,
    );
    return OTHER_COLUMNS_BYTES + Number(reader.value(0, 0) ?? 0);
  }
}

/**
 * The newest tables in which a project has enough places, and that may be merged; none where there are not. Those from after
 * `recent` and those from before stay apart, and a table is left alone where it is much larger than all that are newer.
 */
export function chooseTables(
  tables: readonly TimedPart[],
  recent: bigint,
  enoughPlaces: number,
): readonly Part[] {
  for (let end = tables.length; end > 0; end--) {
    const until = tables[end - 1]?.until ?? 0n;
    const chosen: Part[] = [];
    let rows = 0;
    for (const { part, since, until: own } of tables.slice(0, end).reverse()) {
      if (own >= recent !== until >= recent) break;
      if (until >= recent && until - since > MAX_RECENT_SPAN) break;
      if (rows > 0 && (part.rows > rows * MAX_RATIO || rows + part.rows > MAX_MERGED_ROWS)) break;
      chosen.unshift(part);
      rows += part.rows;
    }
    if (countPlaces(chosen) >= enoughPlaces) return chosen;
  }
  return [];
}

function countPlaces(tables: readonly Part[]): number {
  return tables.reduce(
    (sum, { isCompacted, rows }) => sum + (isCompacted ? 1 : Math.ceil(rows / ROW_GROUP_ROWS)),
    0,
  );
}
