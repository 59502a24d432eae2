// The connections that run queries, one for each slot of the query queue. A cancelled query is interrupted inside DuckDB.
import { setTimeout as sleep } from 'node:timers/promises';
import { DendroError } from '../../domain/errors.ts';
import { type QueryLimits, QueryQueue, type TimedResult } from '../query-queue.ts';
import type { QueryOptions } from '../store.ts';
import type { DuckDBConnection, DuckDBPreparedStatement } from './driver.ts';

export interface PoolOptions extends QueryLimits {
  connect(): Promise<DuckDBConnection>;
}

/** Cheap queries run beside a query that runs again, and may use the memory. */
const MAX_RETRIES = 3;
const RETRY_PAUSE_MS = 100;

export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #queue: QueryQueue;
  readonly #idle: QueryConnection[] = [];
  /** Queries that were short of memory and have not ended. */
  readonly #short = new Set<QueryOptions>();

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#queue = new QueryQueue(options);
  }

  get queue(): Pick<QueryQueue, 'waiting' | 'running'> {
    return this.#queue;
  }

  /**
   * Runs `work` on a connection of its own. Throws as Store.query does. If it is short of memory, it waits for its turn among the
   * expensive queries, and runs again within the same time limit. Until it has ended, further queries of its callers are expensive,
   * too, so that they do not use up the memory again, and all queries get `savesMemory`.
   */
  async run<T>(
    work: (queryConnection: QueryConnection, savesMemory: boolean) => Promise<T>,
    options: QueryOptions = {},
  ): Promise<TimedResult<T>> {
    const limitedAt = performance.now() + this.#options.queryTimeoutSeconds * 1000;
    const endsAt = Math.min(options.endsAt ?? limitedAt, limitedAt);
    const runOnce = (isExpensive = false) =>
      this.#queue.run(
        ({ signal }) =>
          this.#attempt(connection => work(connection, isExpensive || this.#short.size > 0), signal),
        { ...options, endsAt, isExpensive: isExpensive || options.isExpensive },
      );
    const ids = [...(options.callers?.ids ?? [])];
    const isExpensive = [...this.#short].some(short => ids.some(id => short.callers?.ids.has(id)));
    try {
      return await runOnce(isExpensive);
    } catch (error) {
      if (!isShortOfMemory(error)) throw error;
    }
    this.#short.add(options);
    try {
      for (let retries = 1; ; retries++) {
        await sleep(RETRY_PAUSE_MS); // for queries that began before and use the memory
        try {
          return await runOnce(true);
        } catch (error) {
          if (retries === MAX_RETRIES || !isShortOfMemory(error)) return mapOutOfMemory(error);
        }
      }
    } finally {
      this.#short.delete(options);
    }
  }

  async #attempt<T>(work: (queryConnection: QueryConnection) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const used = this.#idle.pop() ?? new QueryConnection(await this.#options.connect());
    const interrupter = interruptOn(signal, used.connection);
    try {
      signal.throwIfAborted();
      const result = await work(used);
      this.#idle.push(used);
      return result;
    } catch (error) {
      used.connection.closeSync(); // it may have an unfinished result
      throw error;
    } finally {
      interrupter.stop();
    }
  }

  /** Cancels running queries, then closes every connection. */
  async close(): Promise<void> {
    await this.#queue.close();
    for (const { connection } of this.#idle.splice(0)) connection.closeSync();
  }
}

/** Statements that a connection keeps. Their SQL changes with every flush, so old ones are of no use. */
const MAX_STATEMENTS = 20;

export class QueryConnection {
  readonly connection: DuckDBConnection;
  /** By SQL, least recently used first. */
  readonly #statements = new Map<string, DuckDBPreparedStatement>();

  constructor(connection: DuckDBConnection) {
    this.connection = connection;
  }

  /** The statement may have been prepared for an earlier query: DuckDB must plan it when it runs (saved-query.ts). */
  async prepare(sql: string): Promise<DuckDBPreparedStatement> {
    const statement = this.#statements.get(sql) ?? (await this.connection.prepare(sql));
    this.#statements.delete(sql);
    this.#statements.set(sql, statement);
    for (const [oldest, unused] of this.#statements) {
      if (this.#statements.size <= MAX_STATEMENTS) break;
      this.#statements.delete(oldest);
      unused.destroySync();
    }
    return statement;
  }

  /** Ends a result of which not all rows were read, and frees its memory. */
  async endResult(): Promise<void> {
    await (await this.prepare('select 1')).run();
  }
}

const INTERRUPT_INTERVAL_MS = 20;

/**
 * Interrupts the connection when the signal aborts, and repeats that until `stop` is called: an interrupt between two statements
 * has no effect.
 */
function interruptOn(signal: AbortSignal, connection: DuckDBConnection): { stop(): void } {
  let repeat: NodeJS.Timeout | undefined;
  const interrupt = () => {
    connection.interrupt();
    repeat = setInterval(() => connection.interrupt(), INTERRUPT_INTERVAL_MS);
  };
  signal.addEventListener('abort', interrupt);
  return {
    stop() {
      signal.removeEventListener('abort', interrupt);
      clearInterval(repeat);
    },
  };
}

/** Throws `unavailable` if there was too little free memory, so that the caller can retry. */
function mapOutOfMemory(error: unknown): never {
  if (!isShortOfMemory(error)) throw error;
  throw new DendroError('unavailable', 'the store is short of memory; retry in a moment', { cause: error });
}

/** Whether other queries may have used the memory. Not if a query needs more than DuckDB may ever use. */
function isShortOfMemory(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message.startsWith('Out of Memory Error') && !exceedsMemoryLimit(error.message);
}

/**
 * Whether DuckDB needed more memory at once than it may ever use. A retry cannot succeed then: the query needs too much, or
 * DuckDB read a damaged length from its file. DuckDB writes "failed to allocate data of size 2.0 GiB (63.1 MiB/100.0 MiB used)".
 */
function exceedsMemoryLimit(message: string): boolean {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  const match = /of size ([\d.]+) (\w+) \([^/]*\/([\d.]+) (\w+) used\)/.exec(message);
  if (match === null) return false;
  const [, size, unit = '', limit, limitUnit = ''] = match;
  return Number(size) * 1024 ** units.indexOf(unit) > Number(limit) * 1024 ** units.indexOf(limitUnit);
}
