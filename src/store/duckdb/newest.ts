// When the newest record of each kind was written: kept in memory, since every answer tells it.
import { type DuckDBConnection, DuckDBTimestampValue, type DuckDBValue } from '@duckdb/node-api';
import { MICROS_PER_SECOND } from '../../clock.ts';
import { LOG_KINDS, type LogKind } from '../../log-record.ts';
import type { QueryCall } from '../store.ts';
import type { ReaderPool } from './reader-pool.ts';

const MICROS_PER_HOUR = 3600n * MICROS_PER_SECOND;
const BEGINNING = 0n;

export class NewestRecords {
  readonly #readers: ReaderPool;
  readonly #newest: Map<LogKind, bigint>;

  private constructor(readers: ReaderPool, newest: Map<LogKind, bigint>) {
    this.#readers = readers;
    this.#newest = newest;
  }

  static async read(connection: DuckDBConnection, readers: ReaderPool): Promise<NewestRecords> {
    const newest = new Map<LogKind, bigint>();
    for (const kind of LOG_KINDS) {
      const reader = await connection.runAndReadAll(`select max(timestamp) from ${kind}_logs`);
      const micros = toMicros(reader.value(0, 0));
      if (micros !== undefined) newest.set(kind, micros);
    }
    return new NewestRecords(readers, newest);
  }

  /** To be called once the records can be seen. */
  note(kind: LogKind, micros: bigint): void {
    const known = this.#newest.get(kind);
    if (known === undefined || micros > known) this.#newest.set(kind, micros);
  }

  /** Asks the tables only for one project, or when records lie in the future. */
  async find(
    kind: LogKind,
    notAfter: bigint,
    project?: string,
    call?: QueryCall,
  ): Promise<bigint | undefined> {
    const newest = this.#newest.get(kind);
    if (newest === undefined || (project === undefined && newest <= notAfter)) return newest;
    const { result } = await this.#readers.run(async reader => {
      const statement = await reader.prepare(
        `select max(timestamp) from ${kind}_logs
        where timestamp between $start and $now and ($project is null or project = $project)`,
      );
      // The last hour lies in few row groups, and nearly always has the answer; all of time is read only if it has not.
      for (const start of [notAfter - MICROS_PER_HOUR, BEGINNING]) {
        const [from, now] = [new DuckDBTimestampValue(start), new DuckDBTimestampValue(notAfter)];
        statement.bind({ start: from, now, project: project ?? null });
        const found = toMicros((await statement.runAndReadAll()).value(0, 0));
        if (found !== undefined) return found;
      }
      return undefined;
    }, call);
    return result;
  }
}

function toMicros(value: DuckDBValue): bigint | undefined {
  return value instanceof DuckDBTimestampValue ? value.micros : undefined;
}
