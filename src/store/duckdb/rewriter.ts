// Replaces parts by a sorted copy of their records, for compaction, retention and erasure. Pauses while the store is busy. One
// such job runs at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { Mutex } from '../../system/mutex.ts';
import { addContents, EMPTY, readContent } from './checksum.ts';
import type { StoreContext } from './context.ts';
import type { AfterBatch, Condition } from './copy-records.ts';
import type { Part } from './parts.ts';
import type { StoreConnection } from './run-long.ts';
import { isDamageError } from './storage-error.ts';

export class Rewriter {
  readonly #context: StoreContext;
  /** Only used by jobs. */
  readonly #connection: StoreConnection;
  /** How many queries and batches of records the store has received so far. */
  readonly #countOperations: () => number;
  readonly #jobs = new Mutex();
  #isClosing = false;

  constructor(context: StoreContext, connection: StoreConnection, countOperations: () => number) {
    this.#context = context;
    this.#connection = connection;
    this.#countOperations = countOperations;
  }

  /** Runs `job` while no other job runs. */
  run<T>(job: () => Promise<T>): Promise<T> {
    return this.#jobs.run(async () => {
      this.#throwIfClosing();
      return job();
    });
  }

  /**
   * Replaces the sources, which are of one kind, by one part without the records that match `except`. Returns how many records it
   * removed. If it fails because a source is damaged, sets the source aside. Must be called within `run`.
   */
  rewrite(sources: readonly [Part, ...Part[]], except?: Condition): Promise<number> {
    return this.#setAsideDamaged(sources, () => this.#rewrite(sources, except));
  }

  /** How many records of the part match the condition. If the part is damaged, sets it aside. Must be called within `run`. */
  count(part: Part, { sql, values }: Condition): Promise<number> {
    return this.#setAsideDamaged([part], async () => {
      this.#throwIfClosing();
      const counting = `select count(*) from ${part.table} where ${sql}`;
      const result = await this.#connection.runAndReadAll(counting, { ...values });
      return Number(result.value(0, 0));
    });
  }

  /** Cancels the running job. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#connection.interrupt();
    await this.#jobs.idle();
  }

  async #setAsideDamaged<T>(sources: readonly Part[], work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isDamageError(error)) await this.#context.parts.setAsideDamaged(sources);
      throw error;
    }
  }

  async #rewrite(sources: readonly [Part, ...Part[]], except: Condition | undefined): Promise<number> {
    const { partWriter, parts, requireDiskSpace } = this.#context;
    const [connection, [{ entry }]] = [this.#connection, sources];
    await requireDiskSpace(sources.reduce((sum, part) => sum + part.entry.bytes, 0));
    const afterBatch = this.#createThrottle();
    let content = EMPTY;
    for (const { table } of sources)
      content = addContents(content, await readContent(connection, entry.kind, table, afterBatch, except));
    if (content.rows === 0) {
      await parts.commit({ remove: sources });
      return countRecords(sources);
    }
    const from = `(${sources.map(({ table }) => `from ${table}`).join(' union all ')})`;
    const add = [await partWriter.write(connection, entry.kind, { from, except, content }, afterBatch)];
    try {
      this.#throwIfClosing();
      await parts.commit({ add, remove: sources });
    } catch (error) {
      await parts.discard(add);
      throw error;
    }
    return countRecords(sources) - content.rows;
  }

  /** If the store was used during a batch, pauses for as long as the batch took. */
  #createThrottle(): AfterBatch {
    let operations = this.#countOperations();
    return async ms => {
      if (this.#countOperations() !== operations && !this.#isClosing)
        await sleep(ms, undefined, { ref: false });
      operations = this.#countOperations();
      this.#throwIfClosing();
    };
  }

  #throwIfClosing(): void {
    if (this.#isClosing) throw new Error('the store is closed');
  }
}

export function countRecords(parts: readonly Part[]): number {
  return parts.reduce((sum, { entry }) => sum + entry.records, 0);
}
