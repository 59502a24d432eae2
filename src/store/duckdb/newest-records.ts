// When the newest record of each kind was written: kept in memory, since every answer tells it.

import type { LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_SECOND } from '../../system/clock.ts';
import { findNewest } from '../newest-record.ts';
import type { QueryOptions } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { type DuckDBConnection, DuckDBTimestampValue, type DuckDBValue } from './driver.ts';

const BEGINNING = 0n;

export class NewestRecords {
  readonly #readers: ConnectionPool;
  readonly #newest = new Map<LogKind, bigint>();
  /** What was found for all projects while records lay in the future: true, if a little old, for a second. */
  readonly #recentlyFound = new Map<LogKind, { readonly notAfter: bigint; readonly micros: bigint }>();

  constructor(readers: ConnectionPool) {
    this.#readers = readers;
  }

  /**
   * Looks at a table into which records came, for what is newer than known: row groups without it are not read. To be called
   * once the records can be seen.
   */
  async update(connection: DuckDBConnection, kind: LogKind, table: string): Promise<void> {
    const known = this.#newest.get(kind) ?? BEGINNING - 1n;
    const reader = await connection.runAndReadAll(
      `select max(timestamp) from ${table} where timestamp > $known`,
      { known: new DuckDBTimestampValue(known) },
    );
    const micros = toMicros(reader.value(0, 0));
    if (micros !== undefined) this.#newest.set(kind, micros);
    this.#recentlyFound.delete(kind);
  }

  /** To be called when what is older was removed. */
  forgetBefore(micros: bigint): void {
    for (const [kind, newest] of this.#newest) if (newest < micros) this.#newest.delete(kind);
    this.#recentlyFound.clear();
  }

  /** Asks the tables only for one project, or when records lie in the future. */
  async find(
    kind: LogKind,
    notAfter: bigint,
    project?: string,
    call?: QueryOptions,
  ): Promise<bigint | undefined> {
    const newest = this.#newest.get(kind);
    if (newest === undefined) return undefined;
    if (project !== undefined) return this.#query(kind, notAfter, project, call);
    if (newest <= notAfter) return newest;
    const lately = this.#recentlyFound.get(kind);
    const age = lately === undefined ? -1n : notAfter - lately.notAfter;
    if (lately !== undefined && age >= 0n && age < MICROS_PER_SECOND) return lately.micros;
    const micros = await this.#query(kind, notAfter, undefined, call);
    if (micros !== undefined) this.#recentlyFound.set(kind, { notAfter, micros });
    return micros;
  }

  async #query(
    kind: LogKind,
    notAfter: bigint,
    project: string | undefined,
    call: QueryOptions | undefined,
  ): Promise<bigint | undefined> {
    const { result } = await this.#readers.run(async reader => {
      const statement = await reader.prepare(
        `select max(timestamp) from ${kind}_logs
        where timestamp between $start and $now and ($project is null or project = $project)`,
      );
      return findNewest(notAfter, async start => {
        const [from, now] = [new DuckDBTimestampValue(start), new DuckDBTimestampValue(notAfter)];
        statement.bind({ start: from, now, project: project ?? null });
        return toMicros((await statement.runAndReadAll()).value(0, 0));
      });
    }, call);
    return result;
  }
}

function toMicros(value: DuckDBValue): bigint | undefined {
  return value instanceof DuckDBTimestampValue ? value.micros : undefined;
}
