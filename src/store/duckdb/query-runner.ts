// Runs saved queries on the tables that they need. If a part turns out to be damaged, sets it aside and runs the query again.
import { Mutex } from '../../system/mutex.ts';
import type { BoundValues, QueryOptions, QueryResult, SavedQuery } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { Part, Parts } from './parts.ts';
import { PLANNED_WHEN_RUN_VALUES, type QueryTableSelector } from './query-tables.ts';
import { FailedStreamError, runSavedQuery } from './saved-query.ts';
import { isStorageError } from './storage-error.ts';

/** A part that was found intact is not read again for this time: reading it takes long, and errors can have other causes. */
const RECHECK_MS = 600_000;

export interface QueryRunnerDependencies {
  readonly pool: ConnectionPool;
  readonly tables: QueryTableSelector;
  readonly parts: Parts;
}

export class QueryRunner {
  readonly #dependencies: QueryRunnerDependencies;
  readonly #checkedAt = new WeakMap<Part, number>();
  /** Held while parts are read. */
  readonly #checks = new Mutex();

  constructor(dependencies: QueryRunnerDependencies) {
    this.#dependencies = dependencies;
  }

  /** Implements Store.query. */
  readonly run = async (
    query: SavedQuery,
    values: BoundValues,
    options: QueryOptions = {},
  ): Promise<QueryResult> => {
    const suspects: Part[] = [];
    try {
      return await this.#runOnce(query, values, options, suspects);
    } catch (error) {
      if (!(isStorageError(error) || error instanceof FailedStreamError)) throw error;
      if (!(await this.#setAsideDamaged(suspects))) throw error;
      return this.#runOnce(query, values, options, []);
    }
  };

  async #runOnce(
    query: SavedQuery,
    values: BoundValues,
    options: QueryOptions,
    used: Part[],
  ): Promise<QueryResult> {
    const { pool, tables } = this.#dependencies;
    const { result, queuedMs, executedMs } = await pool.run(async connection => {
      const { sql, parts, missingParts, release } = tables.select(query.sql, options.range);
      used.push(...parts);
      try {
        const bound = { ...values, ...PLANNED_WHEN_RUN_VALUES };
        const rows = await runSavedQuery(connection, { ...query, sql }, bound, options.maxBytes);
        return { ...rows, missingParts };
      } finally {
        release();
      }
    }, options);
    return { ...result, queuedMs, executedMs };
  }

  /** Returns whether any of the parts was set aside, by this query or by another one that has read the same part. */
  async #setAsideDamaged(suspects: readonly Part[]): Promise<boolean> {
    const { parts } = this.#dependencies;
    await this.#checks.run(async () => {
      const now = performance.now();
      const due = suspects.filter(
        part => now - (this.#checkedAt.get(part) ?? Number.NEGATIVE_INFINITY) > RECHECK_MS,
      );
      await parts.setAsideDamaged(due);
      for (const part of due) this.#checkedAt.set(part, now);
    });
    return suspects.some(part => !parts.listAll().includes(part));
  }
}
