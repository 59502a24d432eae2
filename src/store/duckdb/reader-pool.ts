// The connections that answer queries: a fixed number at once, a bounded queue behind them, and a time limit over both.
// A query that is cancelled is interrupted inside DuckDB; its connection serves again only after its rollback.
import type { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api';
import { DendroError } from '../../errors.ts';

export interface ReaderLimits {
  /** Queries that wait while all connections are busy; one more is refused. */
  readonly queueLength: number;
  /** Waiting and running together. */
  readonly timeoutSeconds: number;
}

export interface Reader {
  readonly connection: DuckDBConnection;
  /** Prepared once on this connection, then reused: preparing costs more than many queries. */
  prepare(sql: string): Promise<DuckDBPreparedStatement>;
}

interface Waiter {
  readonly take: (reader: PooledReader) => void;
}

export class ReaderPool {
  readonly #limits: ReaderLimits;
  readonly #idle: PooledReader[];
  readonly #busy = new Set<PooledReader>();
  readonly #waiters: Waiter[] = [];
  #closed = false;

  constructor(connections: readonly DuckDBConnection[], limits: ReaderLimits) {
    this.#idle = connections.map(connection => new PooledReader(connection));
    this.#limits = limits;
  }

  /** Runs `work` in a read-only transaction of its own. Throws as Store.query says. */
  async run<T>(work: (reader: Reader) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const deadline = AbortSignal.timeout(this.#limits.timeoutSeconds * 1000);
    const cancel = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    const reader = await this.#acquire(cancel, signal);
    const interrupter = interruptOn(cancel, reader.connection);
    try {
      await reader.connection.run('begin transaction read only');
      cancel.throwIfAborted();
      return await work(reader);
    } catch (error) {
      signal?.throwIfAborted();
      if (deadline.aborted) throw timedOut(this.#limits.timeoutSeconds);
      throw asStoreError(error);
    } finally {
      interrupter.stop();
      void this.#release(reader); // the answer does not wait for the rollback
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const reader of this.#busy) reader.connection.interrupt();
    while (this.#busy.size > 0) await Promise.all([...this.#busy].map(reader => reader.released));
    for (const reader of this.#idle.splice(0)) reader.connection.closeSync();
  }

  async #acquire(cancel: AbortSignal, signal: AbortSignal | undefined): Promise<PooledReader> {
    signal?.throwIfAborted();
    if (this.#closed) throw new DendroError('unavailable', 'the store is closed');
    const reader = this.#idle.pop() ?? (await this.#wait(cancel, signal));
    this.#busy.add(reader);
    return reader;
  }

  #wait(cancel: AbortSignal, signal: AbortSignal | undefined): Promise<PooledReader> {
    if (this.#waiters.length >= this.#limits.queueLength)
      throw new DendroError('unavailable', 'too many queries are waiting; try again in a moment');
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(
          signal?.aborted
            ? signal.reason
            : new DendroError('unavailable', 'the query waited too long for its turn; try again in a moment'),
        );
      };
      const waiter: Waiter = {
        take: reader => {
          cancel.removeEventListener('abort', leave);
          resolve(reader);
        },
      };
      cancel.addEventListener('abort', leave);
      this.#waiters.push(waiter);
    });
  }

  async #release(reader: PooledReader): Promise<void> {
    reader.released = reader.connection.run('rollback').then(
      () => {},
      () => {}, // a failed BEGIN leaves nothing to roll back
    );
    await reader.released;
    this.#busy.delete(reader);
    const next = this.#closed ? undefined : this.#waiters.shift();
    if (next === undefined) this.#idle.push(reader);
    else next.take(reader);
  }
}

class PooledReader implements Reader {
  readonly connection: DuckDBConnection;
  released: Promise<void> = Promise.resolve();
  readonly #prepared = new Map<string, DuckDBPreparedStatement>();

  constructor(connection: DuckDBConnection) {
    this.connection = connection;
  }

  async prepare(sql: string): Promise<DuckDBPreparedStatement> {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = await this.connection.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}

/** Interrupts until it is stopped: an interrupt that falls between two statements of one piece of work is lost. */
function interruptOn(cancel: AbortSignal, connection: DuckDBConnection): { stop(): void } {
  let repeat: NodeJS.Timeout | undefined;
  const interrupt = () => {
    connection.interrupt();
    repeat = setTimeout(interrupt, 20);
  };
  cancel.addEventListener('abort', interrupt);
  return {
    stop() {
      cancel.removeEventListener('abort', interrupt);
      clearTimeout(repeat);
    },
  };
}

function timedOut(seconds: number): DendroError {
  return new DendroError(
    'query_timeout',
    `the query ran past its limit of ${seconds} s and was cancelled; a narrower question may fit`,
  );
}

function asStoreError(error: unknown): unknown {
  if (error instanceof Error && error.message.startsWith('Out of Memory Error'))
    return new DendroError('unavailable', 'the store is short of memory; try again in a moment', {
      cause: error,
    });
  return error;
}
