// Writes the records of an old store to parts: a range of rows of one table at a time, with one part for each time window that the
// range has records of. Compaction merges them later.
import type { Clock } from '../../../system/clock.ts';
import { ROW_GROUP_ROWS } from '../checksum.ts';
import { messageOf } from '../errors.ts';
import type { PartEntry } from '../manifest.ts';
import { PartWriter } from '../part-writer.ts';
import { MAX_LARGE_BYTES } from '../rewriter.ts';
import { splitByWindow, type WindowRun } from '../time-windows.ts';
import { type OldStore, type OldStoreOptions, type RowRange, recordsOf } from './old-store.ts';

const RANGE_ROWS = 8 * ROW_GROUP_ROWS;
const PROGRESS_MS = 5_000;
/** Each record is read, written and read back. */
const STEPS_PER_RECORD = 3;

export interface WritePartsOptions extends OldStoreOptions {
  /** The parts are written to this directory. */
  readonly partsDirectory: string;
  readonly maxPartBytes?: number | undefined;
  /** Leave out the rows that cannot be read. */
  readonly acceptLoss?: boolean | undefined;
  readonly clock: Clock;
}

/** Converts all records. Throws if some cannot be read, unless the loss is accepted. */
export class Conversion {
  readonly #options: WritePartsOptions;
  readonly #partWriter: PartWriter;
  /** All of them are known when the conversion starts. */
  #records = 0;
  #steps = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  readonly parts: PartEntry[] = [];
  nextPart = 1;
  #store: OldStore;

  constructor(store: OldStore, options: WritePartsOptions) {
    this.#store = store;
    this.#options = options;
    this.#partWriter = new PartWriter({ ...options, nextPartNumber: () => this.nextPart++ });
  }

  /** The store that was passed to the constructor, or the one that replaced it after an error. */
  get store(): OldStore {
    return this.#store;
  }

  async run(): Promise<void> {
    const ranges: RowRange[] = [];
    for (const table of this.#store.tables)
      try {
        ranges.push(...(await this.#store.listRanges(table, RANGE_ROWS)));
      } catch (error) {
        await this.#lose(table.name, undefined, error);
      }
    this.#records = ranges.reduce((sum, { records }) => sum + records, 0);
    this.#addProgress(0);
    try {
      for (const range of ranges) {
        const found = await this.#convert(range);
        if (found !== range.records)
          throw new Error(`${found} of ${range.records} records of ${range.name} were converted`);
      }
    } finally {
      await this.#partWriter.close();
    }
  }

  /** Returns the number of records, including those that are lost. */
  async #convert(range: RowRange): Promise<number> {
    const { connection } = this.#store;
    let runs: readonly WindowRun[];
    try {
      runs = await splitByWindow(connection, range.kind, recordsOf(range), this.#options.clock());
    } catch (error) {
      await this.#lose(range.name, range.records, error);
      return range.records;
    }
    if (runs.some(run => this.#isTooLarge(run)) && range.end - range.start > 1) {
      const middle = Math.ceil((range.start + range.end) / 2);
      const first = await this.#convert({ ...range, end: middle });
      return first + (await this.#convert({ ...range, start: middle }));
    }
    const records = runs.reduce((sum, { content }) => sum + content.rows, 0);
    this.#addProgress(records);
    const afterBatch = async (_: number, copied: number) => this.#addProgress(copied);
    for (const { except, content } of runs) {
      // The window is part of the subquery, so that the batches of the copy are cut from its records only.
      const from = `(select * exclude (rowid) from ${recordsOf(range)} where not (${except?.sql ?? 'false'}))`;
      this.parts.push(await this.#partWriter.write(connection, range.kind, { from, content }, afterBatch));
    }
    return records;
  }

  #isTooLarge({ content: { textBytes, largeTextBytes } }: WindowRun): boolean {
    const { maxPartBytes = Number.POSITIVE_INFINITY } = this.#options;
    return largeTextBytes > MAX_LARGE_BYTES || textBytes > maxPartBytes;
  }

  async #lose(table: string, records: number | undefined, error: unknown): Promise<void> {
    const problem = messageOf(error);
    if (/^(Out of Memory|Interrupt|Connection) Error/.test(problem)) throw error; // says nothing about the table
    if (!this.#options.acceptLoss)
      throw new Error(
        `the table ${table} cannot be read (${records ?? 'an unknown number of'} records): ${problem}. Restore a backup, or lose these records and convert the rest with --accept-loss`,
      );
    this.#options.observe({ type: 'old_table_lost', table, records, problem });
    this.#store = await this.#store.reopen();
  }

  /** Reports the progress every few seconds. */
  #addProgress(records: number): void {
    this.#steps += records;
    if (performance.now() - this.#reportedAt < PROGRESS_MS) return;
    this.#reportedAt = performance.now();
    const share = Math.min(1, this.#steps / Math.max(1, this.#records * STEPS_PER_RECORD));
    this.#options.observe({ type: 'conversion_progress', share, records: this.#records });
  }
}
