// Keeps the timestamp of the newest record of each kind in memory, because every response of an endpoint reports it.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_SECOND } from '../../system/clock.ts';
import { findNewestTimestamp } from '../newest-timestamp.ts';
import type { QueryOptions } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { type DuckDBConnection, DuckDBTimestampValue, type DuckDBValue } from './driver.ts';
import { nameOf, type Parts } from './parts.ts';

/** Just before 1970. Records from before 1970, which a very long retention allows, are ignored. */
const BEFORE_ALL = -1n;

export class NewestTimestamps {
  readonly #pool: ConnectionPool;
  readonly #newest = new Map<LogKind, bigint>();
  /** The newest timestamps that `update` has found since a running `reload` began to read these kinds. */
  readonly #foundDuringReload = new Map<LogKind, bigint>();
  /** Query results over all projects, for kinds that have records with a timestamp in the future. Used for one second. */
  readonly #recentlyFound = new Map<LogKind, { readonly notAfter: bigint; readonly micros: bigint }>();

  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  /** Reads the newest timestamps from the parts, at start. */
  async load(connection: DuckDBConnection, parts: Parts): Promise<void> {
    for (const kind of LOG_KINDS) {
      const last = parts.list(kind).findLast(({ rows }) => rows > 0);
      if (last === undefined) continue;
      // The newest part nearly always has the newest record. Then DuckDB skips all row groups of the other parts.
      await this.update(connection, kind, nameOf(last));
      await this.update(connection, kind, `logs.${kind}_logs`);
    }
  }

  /**
   * Looks for a newer record in a table. DuckDB skips row groups that have none. Must be called when added records are visible.
   */
  async update(connection: DuckDBConnection, kind: LogKind, table: string): Promise<void> {
    const known = this.#foundDuringReload.get(kind) ?? this.#newest.get(kind) ?? BEFORE_ALL;
    const micros = await readNewest(connection, table, known);
    if (micros !== undefined) {
      setIfNewer(this.#newest, kind, micros);
      if (this.#foundDuringReload.has(kind)) setIfNewer(this.#foundDuringReload, kind, micros);
    }
    this.#recentlyFound.delete(kind);
  }

  /**
   * Must be called after records were removed. `beforeMicros`: only records from before this time were removed; undefined:
   * records of any age. Queries the newest timestamp again for each kind whose newest record may have been removed. That record
   * may still exist, because a removal skips memtables and some parts. One call at a time; `update` can run meanwhile.
   */
  async reload(connection: DuckDBConnection, beforeMicros?: bigint): Promise<void> {
    for (const [kind, newest] of [...this.#newest])
      if (beforeMicros === undefined || newest < beforeMicros) await this.#reloadKind(connection, kind);
    this.#recentlyFound.clear();
  }

  async #reloadKind(connection: DuckDBConnection, kind: LogKind): Promise<void> {
    // The query below does not see records that become visible while it runs. `update` collects their timestamps in this map. The
    // map starts from BEFORE_ALL and not from `#newest`, which may be the timestamp of a removed record that was newer than them.
    this.#foundDuringReload.set(kind, BEFORE_ALL);
    try {
      // The view of the kind's memtables and all of its parts (memtables.ts).
      const micros = await readNewest(connection, `mem.${kind}_logs`, BEFORE_ALL);
      if (micros !== undefined) setIfNewer(this.#foundDuringReload, kind, micros);
      const newest = this.#foundDuringReload.get(kind) ?? BEFORE_ALL;
      if (newest === BEFORE_ALL) this.#newest.delete(kind);
      else this.#newest.set(kind, newest);
    } finally {
      this.#foundDuringReload.delete(kind);
    }
  }

  /** Implements Store.newestTimestamp. Queries the tables only if `project` is given or the newest record is after `notAfter`. */
  async find(
    kind: LogKind,
    notAfter: bigint,
    project?: string,
    options?: QueryOptions,
  ): Promise<bigint | undefined> {
    const newest = this.#newest.get(kind);
    if (newest === undefined) return undefined;
    if (project !== undefined) return this.#query(kind, notAfter, project, options);
    if (newest <= notAfter) return newest;
    const recent = this.#recentlyFound.get(kind);
    const age = recent === undefined ? -1n : notAfter - recent.notAfter;
    if (recent !== undefined && age >= 0n && age < MICROS_PER_SECOND) return recent.micros;
    const micros = await this.#query(kind, notAfter, undefined, options);
    if (micros !== undefined) this.#recentlyFound.set(kind, { notAfter, micros });
    return micros;
  }

  async #query(
    kind: LogKind,
    notAfter: bigint,
    project: string | undefined,
    options: QueryOptions | undefined,
  ): Promise<bigint | undefined> {
    const { result } = await this.#pool.run(async queryConnection => {
      const statement = await queryConnection.prepare(
        `select max(timestamp) from ${kind}_logs
        where timestamp between $start and $until and ($project is null or project = $project)`,
      );
      const until = new DuckDBTimestampValue(notAfter);
      return findNewestTimestamp(notAfter, async start => {
        statement.bind({ start: new DuckDBTimestampValue(start), until, project: project ?? null });
        return toMicros((await statement.runAndReadAll()).value(0, 0));
      });
    }, options);
    return result;
  }
}

/** Returns the newest timestamp of a table that is later than `known`. */
async function readNewest(
  connection: DuckDBConnection,
  table: string,
  known: bigint,
): Promise<bigint | undefined> {
  const result = await connection.runAndReadAll(
    `select max(timestamp) from ${table} where timestamp > $known`,
    { known: new DuckDBTimestampValue(known) },
  );
  return toMicros(result.value(0, 0));
}

function setIfNewer(newest: Map<LogKind, bigint>, kind: LogKind, micros: bigint): void {
  if (micros > (newest.get(kind) ?? BEFORE_ALL)) newest.set(kind, micros);
}

function toMicros(value: DuckDBValue): bigint | undefined {
  return value instanceof DuckDBTimestampValue ? value.micros : undefined;
}
