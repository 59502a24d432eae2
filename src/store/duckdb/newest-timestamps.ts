// Finds the timestamp of the newest record of a kind, because every response of an endpoint reports it.
import type { LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_SECOND } from '../../system/clock.ts';
import { findNewestTimestamp } from '../newest-timestamp.ts';
import type { BoundValues, QueryOptions, QueryResult, SavedQuery } from '../store.ts';
import type { Memtables } from './memtables.ts';
import type { Parts } from './parts.ts';

type RunQuery = (query: SavedQuery, values: BoundValues, options: QueryOptions) => Promise<QueryResult>;

export class NewestTimestamps {
  readonly #memtables: Memtables;
  readonly #parts: Parts;
  readonly #query: RunQuery;
  /** Query results over all projects, for kinds that have records with a timestamp in the future. Used for one second. */
  readonly #recentlyFound = new Map<LogKind, { readonly notAfter: bigint; readonly micros: bigint }>();

  constructor(memtables: Memtables, parts: Parts, query: RunQuery) {
    this.#memtables = memtables;
    this.#parts = parts;
    this.#query = query;
  }

  /** Implements Store.newestTimestamp. Queries the tables only if `project` is given or the newest record is after `notAfter`. */
  async find(
    kind: LogKind,
    notAfter: bigint,
    project?: string,
    options: QueryOptions = {},
  ): Promise<bigint | undefined> {
    const newest = this.#findNewest(kind);
    if (newest === undefined) return undefined;
    if (project !== undefined) return this.#search(kind, notAfter, project, options);
    if (newest <= notAfter) return newest;
    const recent = this.#recentlyFound.get(kind);
    const age = recent === undefined ? -1n : notAfter - recent.notAfter;
    if (recent !== undefined && age >= 0n && age < MICROS_PER_SECOND) return recent.micros;
    const micros = await this.#search(kind, notAfter, undefined, options);
    if (micros !== undefined) this.#recentlyFound.set(kind, { notAfter, micros });
    return micros;
  }

  #findNewest(kind: LogKind): bigint | undefined {
    const inMemory = this.#memtables.newestTimestamp(kind);
    const inParts = this.#parts.list(kind)[0]?.entry.until; // the newest part is first
    return inMemory === undefined || (inParts !== undefined && inParts > inMemory) ? inParts : inMemory;
  }

  #search(
    kind: LogKind,
    notAfter: bigint,
    project: string | undefined,
    options: QueryOptions,
  ): Promise<bigint | undefined> {
    const query: SavedQuery = {
      sql: `select max(timestamp) as newest from ${kind}_logs
        where timestamp between $start and $until and ($project is null or project = $project)`,
      columns: [{ name: 'newest', type: 'unix_microseconds' }],
      maxRows: 1,
    };
    return findNewestTimestamp(notAfter, async start => {
      const values: BoundValues = {
        start: { type: 'timestamp', value: start },
        until: { type: 'timestamp', value: notAfter },
        project: { type: 'text', value: project ?? null },
      };
      const range = { start, end: notAfter };
      const [row] = (await this.#query(query, values, { ...options, range })).rows;
      return typeof row?.[0] === 'bigint' ? row[0] : undefined;
    });
  }
}
