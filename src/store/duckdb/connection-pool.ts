// The connections that run queries, one for each slot of the query queue. A cancelled query is interrupted inside DuckDB.
import { DendroError } from '../../domain/errors.ts';
import { type QueryLimits, QueryQueue, type TimedResult } from '../query-queue.ts';
import type { QueryOptions } from '../store.ts';
import type { DuckDBConnection, DuckDBPreparedStatement } from './driver.ts';

export interface PoolOptions extends QueryLimits {
  connect(): Promise<DuckDBConnection>;
}

export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #queue: QueryQueue;
  readonly #idle: QueryConnection[] = [];

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#queue = new QueryQueue(options);
  }

  get queue(): Pick<QueryQueue, 'waiting' | 'running'> {
    return this.#queue;
  }

  /** Runs `work` on a connection of its own. Throws as Store.query does. */
  run<T>(
    work: (queryConnection: QueryConnection) => Promise<T>,
    options?: QueryOptions,
  ): Promise<TimedResult<T>> {
    return this.#queue.run(async ({ signal }) => {
      const used = this.#idle.pop() ?? new QueryConnection(await this.#options.connect());
      const interrupter = interruptOn(signal, used.connection);
      try {
        signal.throwIfAborted();
        const result = await work(used);
        this.#idle.push(used);
        return result;
      } catch (error) {
        used.connection.closeSync(); // it may have an unfinished result
        throw mapOutOfMemory(error);
      } finally {
        interrupter.stop();
      }
    }, options);
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

  /** The statement may have been prepared for an earlier query: DuckDB must plan it when it runs (queries.ts). */
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

/**
 * Too little free memory is temporary, so it becomes `unavailable`, and the caller can retry. Returns all other errors unchanged,
 * including the error of a query that needs more memory than DuckDB may ever use.
 */
function mapOutOfMemory(error: unknown): unknown {
  if (!isOutOfMemory(error) || exceedsMemoryLimit(error.message)) return error;
  return new DendroError('unavailable', 'the store is short of memory; retry in a moment', { cause: error });
}

function isOutOfMemory(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('Out of Memory Error');
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
