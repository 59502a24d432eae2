// Finds the timestamp of the newest record of a kind, because every response of an endpoint reports it.
import type { LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_SECOND } from '../../system/clock.ts';
import { findNewestTimestamp } from '../newest-timestamp.ts';
import type { QueryOptions } from '../store.ts';
import type { Memtables } from './memtables.ts';
import type { Parts } from './parts.ts';
import type { QueryRunner } from './query-runner.ts';

export class NewestTimestamps {
  readonly #memtables: Memtables;
  readonly #parts: Parts;
  readonly #queries: QueryRunner;
  /** Query results over all projects, for kinds that have records with a timestamp in the future. Used for one second. */
  readonly #recentlyFound = new Map<LogKind, { readonly notAfter: bigint; readonly micros: bigint }>();

  constructor(memtables: Memtables, parts: Parts, queries: QueryRunner) {
    this.#memtables = memtables;
    this.#parts = parts;
    this.#queries = queries;
  }

  /** Implements Store.newestTimestamp. Queries the tables only if `project` is given or the newest record is after `notAfter`. */
  async find(
    kind: LogKind,
    notAfter: bigint,
    project?: string,
    options: QueryOptions = {},
  ): Promise<bigint | undefined> {
    const inMemory = this.#memtables.newestTimestamp(kind);
    const inParts = this.#parts.list(kind)[0]?.entry.until; // the newest part is first
    const newest = inMemory === undefined || (inParts ?? inMemory) > inMemory ? inParts : inMemory;
    if (newest === undefined) return undefined;
    if (project !== undefined) return this.#search(kind, notAfter, project, options);
    if (newest <= notAfter) return newest;
    const recent = this.#recentlyFound.get(kind);
    const age = recent === undefined ? -1n : notAfter - recent.notAfter;
    if (recent !== undefined && age >= 0n && age < MICROS_PER_SECOND) return recent.micros;
    const micros = await this.#search(kind, notAfter, null, options);
    if (micros !== undefined) this.#recentlyFound.set(kind, { notAfter, micros });
    return micros;
  }

  #search(
    kind: LogKind,
    notAfter: bigint,
    project: string | null,
    options: QueryOptions,
  ): Promise<bigint | undefined> {
    const sql = `select max(timestamp) as newest from ${kind}_logs
      where timestamp between $start and $until and ($project is null or project = $project)`;
    const columns = [{ name: 'newest', type: 'unix_microseconds' as const }];
    return findNewestTimestamp(notAfter, async start => {
      const { rows } = await this.#queries.run(
        { sql, columns, maxRows: 1 },
        {
          start: { type: 'timestamp', value: start },
          until: { type: 'timestamp', value: notAfter },
          project: { type: 'text', value: project },
        },
        { ...options, range: { start, end: notAfter } },
      );
      return typeof rows[0]?.[0] === 'bigint' ? rows[0][0] : undefined;
    });
  }
}
