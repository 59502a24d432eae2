// The connections that answer queries: a fixed number at once, a bounded queue behind them, and a time limit over both.
// A query that is cancelled is interrupted inside DuckDB; its connection serves again only after its rollback.
import { DendroError } from '../../domain/errors.ts';
import type { ReadWriteLock } from '../../system/read-write-lock.ts';
import { storeClosed, timedOut, waitedTooLong } from '../query-errors.ts';
import type { QueryOptions } from '../store.ts';
import { type DuckDBConnection, type DuckDBPreparedStatement, DuckDBTypeId } from './driver.ts';

export interface PoolLimits {
  /** Callers' queries that wait while all connections are busy; one more is refused. */
  readonly queueLength: number;
  /** Waiting and running together. */
  readonly timeoutSeconds: number;
}

export interface QueryConnection {
  readonly connection: DuckDBConnection;
  /**
   * Planned within this transaction, now or when it is run. DuckDB's plans hold what the statistics of the tables said when
   * they were made (bounds of numbers, lengths of texts): one that is older than the rows it reads gives wrong answers.
   */
  prepare(sql: string): Promise<DuckDBPreparedStatement>;
}

export interface TimedResult<T> {
  readonly result: T;
  readonly queuedMs: number;
  readonly executedMs: number;
}

interface Waiter {
  readonly call: QueryOptions;
  readonly take: (reader: PooledConnection) => void;
  readonly refuse: (error: unknown) => void;
}

export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #size: number;
  readonly #idle: PooledConnection[];
  readonly #busy = new Set<PooledConnection>();
  readonly #waiters: Waiter[] = [];
  /** Connections in their rollback, which takes a moment: whoever waits for one of them is not yet in a queue. */
  #releasing = 0;
  #closed = false;
  /** Called when the last busy connection is free, after closing began. */
  #onAllFree = () => {};

  private constructor(readers: PooledConnection[], limits: PoolLimits) {
    this.#idle = readers;
    this.#size = readers.length;
    this.#limits = limits;
  }

  static async open(
    connections: readonly DuckDBConnection[],
    limits: PoolLimits,
    gate: ReadWriteLock,
    lookAtAll: string,
  ): Promise<ConnectionPool> {
    const readers = await Promise.all(
      connections.map(connection => PooledConnection.open(connection, gate, lookAtAll)),
    );
    return new ConnectionPool(readers, limits);
  }

  /** Runs `work` in a read-only transaction of its own. Throws as Store.query says. */
  async run<T>(
    work: (reader: QueryConnection) => Promise<T>,
    call: QueryOptions = {},
  ): Promise<TimedResult<T>> {
    const { signal } = call;
    const askedAt = performance.now();
    const deadline = AbortSignal.timeout(this.#limits.timeoutSeconds * 1000);
    const cancel = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    const reader = await this.#acquire(call, cancel);
    const startedAt = performance.now();
    const interrupter = interruptOn(cancel, reader.connection);
    try {
      await reader.begin();
      cancel.throwIfAborted();
      const result = await work(reader);
      return { result, queuedMs: startedAt - askedAt, executedMs: performance.now() - startedAt };
    } catch (error) {
      signal?.throwIfAborted();
      if (this.#closed) throw storeClosed();
      if (deadline.aborted) throw timedOut(this.#limits.timeoutSeconds);
      throw asStoreError(error);
    } finally {
      interrupter.stop();
      void this.#release(reader); // the answer does not wait for the rollback
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiters.splice(0)) waiter.refuse(storeClosed());
    await this.#interruptAll();
    for (const reader of this.#idle.splice(0)) reader.connection.closeSync();
  }

  /** Resolves when no connection is busy. */
  async #interruptAll(): Promise<void> {
    if (this.#busy.size === 0) return;
    const repeat = repeatedly(() => {
      for (const reader of this.#busy) reader.connection.interrupt();
    });
    await new Promise<void>(resolve => {
      this.#onAllFree = resolve;
    });
    repeat.stop();
  }

  async #acquire(call: QueryOptions, cancel: AbortSignal): Promise<PooledConnection> {
    call.signal?.throwIfAborted();
    if (this.#closed) throw storeClosed();
    const places = this.#idle.length + this.#releasing + this.#limits.queueLength;
    if (!isBackground(call) && this.#countCallers() >= places)
      throw new DendroError('unavailable', 'too many queries are waiting; try again in a moment');
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(call.signal?.aborted ? call.signal.reason : waitedTooLong());
      };
      const waiter: Waiter = {
        call,
        refuse: error => {
          cancel.removeEventListener('abort', leave);
          reject(error);
        },
        take: reader => {
          cancel.removeEventListener('abort', leave);
          resolve(reader);
        },
      };
      cancel.addEventListener('abort', leave);
      this.#waiters.push(waiter);
      this.#dispatch();
    });
  }

  /** Callers first, in their order. What runs in the background never takes the last idle connection from them. */
  #dispatch(): void {
    while (this.#idle.length > 0) {
      const caller = this.#waiters.findIndex(waiter => !isBackground(waiter.call));
      const mayRunBackground = this.#idle.length > 1 || this.#size === 1;
      const index = caller !== -1 ? caller : mayRunBackground ? 0 : -1;
      const [next] = index === -1 ? [] : this.#waiters.splice(index, 1);
      const reader = next === undefined ? undefined : this.#idle.pop();
      if (next === undefined || reader === undefined) return;
      this.#busy.add(reader);
      next.take(reader);
    }
  }

  #countCallers(): number {
    return this.#waiters.filter(waiter => !isBackground(waiter.call)).length;
  }

  async #release(reader: PooledConnection): Promise<void> {
    this.#releasing++;
    await reader.end();
    this.#releasing--;
    this.#busy.delete(reader);
    this.#idle.push(reader);
    if (!this.#closed) this.#dispatch();
    else if (this.#busy.size === 0) this.#onAllFree();
  }
}

class PooledConnection implements QueryConnection {
  readonly connection: DuckDBConnection;
  readonly #gate: ReadWriteLock;
  readonly #lookAtAll: string;
  /** Prepared once: it reads no table, and saves a fifth of a millisecond for every query. */
  readonly #begin: DuckDBPreparedStatement;
  readonly #rollback: DuckDBPreparedStatement;
  /** Those that DuckDB plans each time they are run. */
  readonly #kept = new Map<string, DuckDBPreparedStatement>();
  readonly #used: DuckDBPreparedStatement[] = [];

  private constructor(
    connection: DuckDBConnection,
    gate: ReadWriteLock,
    lookAtAll: string,
    begin: DuckDBPreparedStatement,
    rollback: DuckDBPreparedStatement,
  ) {
    this.connection = connection;
    this.#gate = gate;
    this.#lookAtAll = lookAtAll;
    this.#begin = begin;
    this.#rollback = rollback;
  }

  static async open(
    connection: DuckDBConnection,
    gate: ReadWriteLock,
    lookAtAll: string,
  ): Promise<PooledConnection> {
    const begin = await connection.prepare('begin transaction read only');
    const rollback = await connection.prepare('rollback');
    return new PooledConnection(connection, gate, lookAtAll, begin, rollback);
  }

  /** From here on everything is read as it was at one moment, whatever is sealed meanwhile. */
  async begin(): Promise<void> {
    await this.#begin.run();
    this.#used.push(await this.#gate.read(() => this.connection.prepare(this.#lookAtAll)));
  }

  async prepare(sql: string): Promise<DuckDBPreparedStatement> {
    const kept = this.#kept.get(sql);
    if (kept !== undefined) return kept;
    const statement = await this.connection.prepare(sql);
    if (isPlannedWhenRun(statement)) this.#kept.set(sql, statement);
    else this.#used.push(statement);
    return statement;
  }

  async end(): Promise<void> {
    for (const statement of this.#used.splice(0)) statement.destroySync();
    await this.#rollback.run().catch(() => {}); // a failed BEGIN leaves nothing to roll back
  }
}

/** DuckDB waits with the plan for the values where the type of a parameter is told by its value alone. */
function isPlannedWhenRun(statement: DuckDBPreparedStatement): boolean {
  for (let index = 1; index <= statement.parameterCount; index++)
    if (statement.parameterTypeId(index) === DuckDBTypeId.INVALID) return true;
  return false;
}

function isBackground(call: QueryOptions): boolean {
  return call.priority?.background === true;
}

function interruptOn(cancel: AbortSignal, connection: DuckDBConnection): { stop(): void } {
  let repeat: { stop(): void } | undefined;
  const interrupt = () => {
    repeat = repeatedly(() => connection.interrupt());
  };
  cancel.addEventListener('abort', interrupt);
  return {
    stop() {
      cancel.removeEventListener('abort', interrupt);
      repeat?.stop();
    },
  };
}

/** At once and again until it is stopped: an interrupt that falls between two statements of one run is lost. */
function repeatedly(interrupt: () => void): { stop(): void } {
  interrupt();
  const repeat = setInterval(interrupt, 20);
  return { stop: () => clearInterval(repeat) };
}

function asStoreError(error: unknown): unknown {
  if (error instanceof Error && error.message.startsWith('Out of Memory Error'))
    return new DendroError('unavailable', 'the store is short of memory; try again in a moment', {
      cause: error,
    });
  return error;
}
