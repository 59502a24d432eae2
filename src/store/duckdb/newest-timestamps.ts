// Keeps the timestamp of the newest record of each kind in memory, because every response of an endpoint reports it.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_SECOND } from '../../system/clock.ts';
import { findNewestTimestamp } from '../newest-timestamp.ts';
import type { QueryOptions } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { type DuckDBConnection, DuckDBTimestampValue, type DuckDBValue } from './driver.ts';
import { nameOf, type Parts } from './parts.ts';

/** Earlier than any record since 1970. Older records, which a long retention allows, are never the newest. */
const BEFORE_ALL = -1n;

export class NewestTimestamps {
  readonly #pool: ConnectionPool;
  readonly #newest = new Map<LogKind, bigint>();
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
    const known = this.#newest.get(kind) ?? BEFORE_ALL;
    const result = await connection.runAndReadAll(
      `select max(timestamp) from ${table} where timestamp > $known`,
      { known: new DuckDBTimestampValue(known) },
    );
    const micros = toMicros(result.value(0, 0));
    if (micros !== undefined) this.#newest.set(kind, micros);
    this.#recentlyFound.delete(kind);
  }

  /** Must be called after records from before `micros` were deleted. */
  forgetBefore(micros: bigint): void {
    for (const [kind, newest] of this.#newest) if (newest < micros) this.#newest.delete(kind);
    this.#recentlyFound.clear();
  }

  /** Must be called after records of any age were removed. */
  async reload(connection: DuckDBConnection): Promise<void> {
    this.#newest.clear();
    for (const kind of LOG_KINDS) await this.update(connection, kind, `mem.${kind}_logs`);
  }

  /** Implements Store.newestTimestamp. Queries the tables only for one project, or if the newest record is after `notAfter`. */
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
    const { result } = await this.#pool.run(async connection => {
      const statement = await connection.prepare(
        `select max(timestamp) from ${kind}_logs
        where timestamp between $start and $now and ($project is null or project = $project)`,
      );
      return findNewestTimestamp(notAfter, async start => {
        const [from, now] = [new DuckDBTimestampValue(start), new DuckDBTimestampValue(notAfter)];
        statement.bind({ start: from, now, project: project ?? null });
        return toMicros((await statement.runAndReadAll()).value(0, 0));
      });
    }, options);
    return result;
  }
}

function toMicros(value: DuckDBValue): bigint | undefined {
  return value instanceof DuckDBTimestampValue ? value.micros : undefined;
}
