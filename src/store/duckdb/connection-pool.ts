// The connections that run queries, one for each slot of the query queue. Every query runs in a read-only transaction of
// its own. A cancelled query is interrupted inside DuckDB. A connection is reused only after a rollback. If the rollback fails,
// another connection replaces it.
import { setTimeout as sleep } from 'node:timers/promises';
import { DendroError } from '../../domain/errors.ts';
import type { ReadWriteLock } from '../../system/read-write-lock.ts';
import { type QueryLimits, QueryQueue, type TimedResult } from '../query-queue.ts';
import type { QueryOptions } from '../store.ts';
import { type DuckDBConnection, type DuckDBPreparedStatement, DuckDBTypeId } from './driver.ts';

export interface QueryConnection {
  readonly connection: DuckDBConnection;
  /**
   * The statement is planned in this transaction, never earlier: a DuckDB plan contains table statistics (bounds of numbers,
   * lengths of texts) of the time it was created, and returns wrong rows if the tables have grown since. So only statements
   * that DuckDB plans on every run are kept for later transactions.
   */
  prepare(sql: string): Promise<DuckDBPreparedStatement>;
  /** Whether a statement of this transaction has failed or was interrupted. */
  isAborted(): Promise<boolean>;
}

export interface PoolOptions extends QueryLimits {
  connect(): Promise<DuckDBConnection>;
  /**
   * Held for reading while a transaction takes its snapshot. A flush holds it for writing while it commits and replaces a view
   * (the union of memtables and parts), so a snapshot never has only one of these two changes.
   */
  readonly viewLock: ReadWriteLock;
  /** Preparing this statement takes the snapshots of both attached databases: `mem` (memtables) and `logs` (the file). */
  readonly snapshotSql: string;
}

export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #queue: QueryQueue;
  readonly #idle: PooledConnection[];

  private constructor(connections: PooledConnection[], options: PoolOptions) {
    this.#options = options;
    this.#queue = new QueryQueue(options);
    this.#idle = connections;
  }

  static async open(options: PoolOptions): Promise<ConnectionPool> {
    const connections = Array.from({ length: options.queryConcurrency }, () =>
      PooledConnection.open(options),
    );
    return new ConnectionPool(await Promise.all(connections), options);
  }

  get queue(): Pick<QueryQueue, 'waiting' | 'running'> {
    return this.#queue;
  }

  /** Runs `work` in a read-only transaction. Throws as Store.query does. */
  async run<T>(
    work: (queryConnection: QueryConnection) => Promise<T>,
    options: QueryOptions = {},
  ): Promise<TimedResult<T>> {
    let pooled: PooledConnection | undefined;
    return this.#queue.run(
      async ({ signal }) => {
        signal.throwIfAborted();
        try {
          pooled = this.#idle.pop() ?? (await PooledConnection.open(this.#options));
          return await runInTransaction(pooled, signal, work);
        } catch (error) {
          throw mapOutOfMemory(error);
        }
      },
      options,
      async () => {
        if (pooled === undefined) return;
        if (await pooled.rollback()) this.#idle.push(pooled);
        else pooled.connection.closeSync();
      },
    );
  }

  /** Cancels running queries, then closes every connection. */
  async close(): Promise<void> {
    await this.#queue.close();
    for (const { connection } of this.#idle.splice(0)) connection.closeSync();
  }
}

async function runInTransaction<T>(
  pooled: PooledConnection,
  signal: AbortSignal,
  work: (queryConnection: QueryConnection) => Promise<T>,
): Promise<T> {
  const interrupter = interruptOn(signal, pooled.connection);
  try {
    await pooled.begin();
    signal.throwIfAborted();
    return await work(pooled);
  } finally {
    interrupter.stop();
  }
}

const ROLLBACK_ATTEMPTS = 10;
const ROLLBACK_INTERVAL_MS = 100;

/** They read no table, so they are prepared once. Preparing them for every query would add 0.3 ms. */
interface ReusedStatements {
  readonly begin: DuckDBPreparedStatement;
  readonly check: DuckDBPreparedStatement;
  readonly rollback: DuckDBPreparedStatement;
}

class PooledConnection implements QueryConnection {
  readonly connection: DuckDBConnection;
  readonly #options: PoolOptions;
  readonly #statements: ReusedStatements;
  /** By SQL. Safe to reuse: DuckDB replans them on every run. */
  readonly #reusable = new Map<string, DuckDBPreparedStatement>();
  /** Destroyed at the end of the current transaction. */
  readonly #transactionStatements: DuckDBPreparedStatement[] = [];

  private constructor(connection: DuckDBConnection, options: PoolOptions, statements: ReusedStatements) {
    this.connection = connection;
    this.#options = options;
    this.#statements = statements;
  }

  static async open(options: PoolOptions): Promise<PooledConnection> {
    const connection = await options.connect();
    try {
      return new PooledConnection(connection, options, {
        begin: await connection.prepare('begin transaction read only'),
        check: await connection.prepare('select 1'),
        rollback: await connection.prepare('rollback'),
      });
    } catch (error) {
      connection.closeSync();
      throw error;
    }
  }

  /** Begins a transaction and takes its snapshot. Later flushes do not change what the transaction reads. */
  async begin(): Promise<void> {
    const { viewLock, snapshotSql } = this.#options;
    await this.#statements.begin.run();
    this.#transactionStatements.push(await viewLock.read(() => this.connection.prepare(snapshotSql)));
  }

  async prepare(sql: string): Promise<DuckDBPreparedStatement> {
    const reusable = this.#reusable.get(sql);
    if (reusable !== undefined) return reusable;
    const statement = await this.connection.prepare(sql);
    if (isPlannedOnEveryRun(statement)) this.#reusable.set(sql, statement);
    else this.#transactionStatements.push(statement);
    return statement;
  }

  isAborted(): Promise<boolean> {
    return this.#statements.check.run().then(
      () => false,
      () => true,
    );
  }

  /**
   * Returns whether it succeeded. A rollback also needs memory, so it can fail after a query that has used up the memory. Then it
   * is retried, because closing the connection ends the transaction only after the garbage collection of an unfinished stream.
   */
  async rollback(): Promise<boolean> {
    for (const statement of this.#transactionStatements.splice(0)) statement.destroySync();
    for (let attempt = 1; ; attempt++)
      try {
        await this.#statements.rollback.run();
        return true;
      } catch (error) {
        if (!isOutOfMemory(error) || attempt === ROLLBACK_ATTEMPTS) return false;
        await sleep(ROLLBACK_INTERVAL_MS);
      }
  }
}

/** DuckDB defers planning to the run if the type of a parameter is known only from its value. */
function isPlannedOnEveryRun(statement: DuckDBPreparedStatement): boolean {
  for (let index = 1; index <= statement.parameterCount; index++)
    if (statement.parameterTypeId(index) === DuckDBTypeId.INVALID) return true;
  return false;
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

const BYTES_BY_UNIT = new Map(
  ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'].map((unit, power) => [unit, 1024 ** power] as const),
);

/**
 * Whether DuckDB needed more memory at once than it may ever use. A retry cannot succeed then: the query needs too much, or
 * DuckDB read a damaged length from its file. DuckDB writes "failed to allocate data of size 2.0 GiB (63.1 MiB/100.0 MiB used)".
 */
function exceedsMemoryLimit(message: string): boolean {
  const match = /of size ([\d.]+) (\w+) \([^/]*\/([\d.]+) (\w+) used\)/.exec(message);
  if (match === null) return false;
  const [, size, unit = '', limit, limitUnit = ''] = match;
  return Number(size) * (BYTES_BY_UNIT.get(unit) ?? 1) > Number(limit) * (BYTES_BY_UNIT.get(limitUnit) ?? 1);
}
