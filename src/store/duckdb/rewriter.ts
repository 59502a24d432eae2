// Replaces parts by a sorted copy of their records, for compaction, retention and erasure. Pauses while the store is busy. One
// such job runs at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { Mutex } from '../../system/mutex.ts';
import { addContents, readContent, type TableContent } from './checksum.ts';
import type { AfterBatch, Condition } from './copy-records.ts';
import type { PartWriter } from './part-writer.ts';
import type { Part, Parts } from './parts.ts';
import type { StoreConnection } from './run-long.ts';
import { isDamageError } from './storage-error.ts';

export interface RewriterDependencies {
  /** Only used by jobs. */
  readonly connection: StoreConnection;
  readonly partWriter: PartWriter;
  readonly parts: Parts;
  /** Throws if the disk has no space for this many bytes. */
  readonly requireDiskSpace: (bytes: number) => Promise<void>;
  /** How many queries and batches of records the store has received so far. */
  readonly countOperations: () => number;
}

export class Rewriter {
  readonly #dependencies: RewriterDependencies;
  readonly #jobs = new Mutex();
  #isClosing = false;

  constructor(dependencies: RewriterDependencies) {
    this.#dependencies = dependencies;
  }

  get isClosing(): boolean {
    return this.#isClosing;
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
    const { connection } = this.#dependencies;
    return this.#setAsideDamaged([part], async () => {
      const result = await connection.runAndReadAll(`select count(*) from ${part.table} where ${sql}`, {
        ...values,
      });
      return Number(result.value(0, 0));
    });
  }

  /** Cancels the running job. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#dependencies.connection.interrupt();
    await this.#jobs.idle();
  }

  async #setAsideDamaged<T>(sources: readonly Part[], work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isDamageError(error)) await this.#dependencies.parts.setAsideDamaged(sources);
      throw error;
    }
  }

  async #rewrite(sources: readonly [Part, ...Part[]], except: Condition | undefined): Promise<number> {
    const { connection, partWriter, parts, requireDiskSpace } = this.#dependencies;
    const [{ entry }] = sources;
    await requireDiskSpace(sources.reduce((sum, part) => sum + part.entry.bytes, 0));
    const afterBatch = this.#createThrottle();
    let content: TableContent | undefined;
    for (const { table } of sources) {
      const read = await readContent(connection, entry.kind, table, afterBatch, except);
      content = content === undefined ? read : addContents(content, read);
    }
    if (content === undefined || content.rows === 0) {
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
    const { countOperations } = this.#dependencies;
    let operations = countOperations();
    return async ms => {
      if (countOperations() !== operations && !this.#isClosing) await sleep(ms, undefined, { ref: false });
      operations = countOperations();
      this.#throwIfClosing();
    };
  }

  #throwIfClosing(): void {
    if (this.#isClosing) throw new Error('the store is closed');
  }
}

function countRecords(parts: readonly Part[]): number {
  return parts.reduce((sum, { entry }) => sum + entry.records, 0);
}
