// Runs saved queries on the tables that they need. If a part turns out to be damaged, sets it aside and runs the query again.
import { Mutex } from '../../system/mutex.ts';
import type { BoundValues, QueryOptions, QueryResult, SavedQuery } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { Part, Parts } from './parts.ts';
import type { QueryTableSelector } from './query-tables.ts';
import { runSavedQuery } from './saved-query.ts';
import { isDamageError } from './storage-error.ts';

export class QueryRunner {
  readonly #pool: ConnectionPool;
  readonly #tables: QueryTableSelector;
  readonly #parts: Parts;
  /** Held while parts are read: of several queries that find the same damage, one reads the files. */
  readonly #checks = new Mutex();

  constructor(pool: ConnectionPool, tables: QueryTableSelector, parts: Parts) {
    this.#pool = pool;
    this.#tables = tables;
    this.#parts = parts;
  }

  /** Implements Store.query. */
  readonly run = async (
    query: SavedQuery,
    values: BoundValues,
    options: QueryOptions = {},
  ): Promise<QueryResult> => {
    let used: readonly Part[] = [];
    const runOnce = async () => {
      const { result, queuedMs, executedMs } = await this.#pool.run(async connection => {
        const { sql, parts, missingParts, release } = this.#tables.select(query.sql, options.range);
        used = parts;
        const rows = await runSavedQuery(connection, { ...query, sql }, values, options.maxBytes).finally(
          release,
        );
        return { ...rows, missingParts };
      }, options);
      return { ...result, queuedMs, executedMs };
    };
    try {
      return await runOnce();
    } catch (error) {
      if (!isDamageError(error) || !(await this.#setAsideDamaged(used))) throw error;
      return runOnce();
    }
  };

  /** Returns whether any of the parts was set aside, by this query or by another one. */
  async #setAsideDamaged(suspects: readonly Part[]): Promise<boolean> {
    const isAnySetAside = () => suspects.some(part => !this.#parts.list().includes(part));
    await this.#checks.run(async () => {
      if (!isAnySetAside()) await this.#parts.setAsideDamaged(suspects);
    });
    return isAnySetAside();
  }
}
