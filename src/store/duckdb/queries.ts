// Runs saved queries on the tables that they need. An endpoint's SQL names edge_logs and so on. Each is defined by a common table
// expression before the SQL: the union of the kind's memtables and of those parts that overlap the time range of the query. If a part
// turns out to be damaged, it is set aside, and the query runs again.
import { setTimeout as sleep } from 'node:timers/promises';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_SECOND } from '../../system/clock.ts';
import { Mutex } from '../../system/mutex.ts';
import { parseLargeMetadataAlone } from '../log-sql.ts';
import { findNewestTimestamp } from '../newest-timestamp.ts';
import type { ParameterRules } from '../query-parameters.ts';
import type { RequiredText } from '../required-text.ts';
import type { BoundValues, QueryOptions, QueryResult, SavedQuery, TimeRange } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { isDamageError } from './errors.ts';
import type { Memtables } from './memtables.ts';
import { Part, type Parts, type QueryTable } from './parts.ts';
import { findPatternProblem, PLANNED_WHEN_RUN, runSavedQuery, validateSavedQuery } from './saved-query.ts';
import { TextSearch } from './text-filter.ts';

/** White space and comments. Each text matches in one way only: otherwise, many comments would take exponential time. */
const GAP = '(?:\\s|--[^\\n]*(?:\\n|$)|/\\*(?:[^*]|\\*(?!/))*\\*/)*';
const START = new RegExp(`^(${GAP})(with\\b${GAP}recursive\\b|with\\b)?`, 'i');
/** No part has records of this range. */
const NO_PARTS: TimeRange = { start: 1n, end: 0n };

/** A query with its tables. Until `release`, the tables are neither dropped nor deleted. */
interface PreparedQuery {
  toSql(search?: TextSearch, savesMemory?: boolean): string;
  readonly parts: readonly Part[];
  /** Parts with records of the range that were set aside, so that the result lacks these records. */
  readonly missingParts: number;
  release(): void;
}

export class Queries {
  readonly #pool: ConnectionPool;
  readonly #memtables: Memtables;
  readonly #parts: Parts;
  readonly #timeoutMs: number;
  /** Held while the file of a part is checked. */
  readonly #checking = new Mutex();
  /** The parts that are being checked or wait for it: of several queries that find the same damage, one reads the files. */
  readonly #checks = new Map<Part, Promise<void>>();
  /** Newest timestamps over all projects, for kinds that have records with a timestamp in the future. Used for one second. */
  readonly #recentlyFound = new Map<LogKind, { readonly notAfter: bigint; readonly micros: bigint }>();
  /** What the queries of a search have read so far from text filters. */
  readonly #searches = new WeakMap<RequiredText, TextSearch>();

  constructor(pool: ConnectionPool, memtables: Memtables, parts: Parts, timeoutSeconds: number) {
    this.#pool = pool;
    this.#memtables = memtables;
    this.#parts = parts;
    this.#timeoutMs = timeoutSeconds * 1000;
  }

  /** Implements Store.query. */
  readonly run = async (
    query: SavedQuery,
    values: BoundValues,
    options: QueryOptions = {},
  ): Promise<QueryResult> => {
    let used: readonly Part[] = [];
    const endsAt = Math.min(options.endsAt ?? Number.POSITIVE_INFINITY, performance.now() + this.#timeoutMs);
    const runOnce = async () => {
      const { result, queuedMs, executedMs } = await this.#pool.run(
        async (connection, savesMemory) => {
          const { toSql, parts, missingParts, release } = this.#prepare(query.sql, options.range);
          used = parts;
          try {
            const search = options.requiredText && this.#searchFor(options.requiredText);
            await search?.read(connection.connection, parts);
            const sql = toSql(search, savesMemory);
            const rows = await runSavedQuery(connection, { ...query, sql }, values, options.maxBytes);
            return { ...rows, missingParts };
          } finally {
            release();
          }
        },
        { ...options, endsAt },
      );
      return { ...result, queuedMs, executedMs };
    };
    try {
      return await runOnce();
    } catch (error) {
      if (!isDamageError(error)) throw error;
      const hasEnded = new AbortController();
      const signal = AbortSignal.any([hasEnded.signal, ...(options.signal ? [options.signal] : [])]);
      const timeLimit = sleep(endsAt - performance.now() + 1, true, { signal, ref: false }).catch(() => true);
      // The check of large parts can take minutes. It continues when the time of the query is over, and the next run then throws.
      const mayRunAgain = Promise.race([this.#setAsideDamaged(used), timeLimit]);
      if (!(await mayRunAgain.finally(() => hasEnded.abort()))) throw error;
      return runOnce();
    }
  };

  /** Implements Store.validateQuery. */
  async validate(query: SavedQuery, rules: ParameterRules): Promise<string | undefined> {
    const { result } = await this.#pool.run(({ connection }) => {
      const { toSql, release } = this.#prepare(query.sql, NO_PARTS);
      return validateSavedQuery(connection, query, toSql(), rules).finally(release);
    });
    return result;
  }

  /** Implements Store.validatePattern. */
  async validatePattern(pattern: string, options?: QueryOptions): Promise<string | undefined> {
    return (await this.#pool.run(connection => findPatternProblem(connection, pattern), options)).result;
  }

  /** Implements Store.newestTimestamp. Queries the tables only if `project` is given or the newest record is after `notAfter`. */
  async findNewest(
    kind: LogKind,
    notAfter: bigint,
    project?: string,
    options?: QueryOptions,
  ): Promise<bigint | undefined> {
    const inMemory = this.#memtables.newestTimestamp(kind);
    const inParts = this.#parts.list(kind)[0]?.entry.until; // the newest part is first
    const newest = inMemory === undefined || (inParts ?? inMemory) > inMemory ? inParts : inMemory;
    if (newest === undefined || (project === undefined && newest <= notAfter)) return newest;
    const recent = project === undefined ? this.#recentlyFound.get(kind) : undefined;
    const age = recent === undefined ? -1n : notAfter - recent.notAfter;
    if (recent !== undefined && age >= 0n && age < MICROS_PER_SECOND) return recent.micros;
    const sql = `select max(timestamp) as newest from ${kind}_logs
      where timestamp between $start and $end and ($project is null or project = $project)`;
    const micros = await findNewestTimestamp(this.run, sql, notAfter, project, options);
    if (micros !== undefined && project === undefined) this.#recentlyFound.set(kind, { notAfter, micros });
    return micros;
  }

  /** Returns whether any of the parts was set aside, by this query or by another one. */
  async #setAsideDamaged(suspects: readonly Part[]): Promise<boolean> {
    const isAnySetAside = () => suspects.some(part => !this.#parts.list().includes(part));
    if (!isAnySetAside()) await Promise.all(suspects.map(part => this.#check(part)));
    return isAnySetAside();
  }

  #check(part: Part): Promise<void> {
    const check =
      this.#checks.get(part) ??
      this.#checking.run(() => this.#parts.setAsideDamaged([part])).finally(() => this.#checks.delete(part));
    this.#checks.set(part, check);
    return check;
  }

  #searchFor(required: RequiredText): TextSearch {
    const search = this.#searches.get(required) ?? new TextSearch(required);
    this.#searches.set(required, search);
    return search;
  }

  #prepare(sql: string, range?: TimeRange): PreparedQuery {
    // All kinds whose tables the SQL may read: those that it names anywhere.
    const names = new Set([...sql.matchAll(/\b(\w+)_logs\b/gi)].map(([, name]) => name?.toLowerCase()));
    const kinds = LOG_KINDS.filter(kind => names.has(kind));
    const tablesByKind = kinds.map(kind => {
      const parts = this.#parts.list(kind).filter(({ entry }) => overlaps(entry, range));
      return {
        kind,
        tables: [...this.#memtables.list(kind), ...parts],
        spare: this.#memtables.activeTable(kind),
      };
    });
    const used = tablesByKind.flatMap(({ tables, spare }) => [...tables, spare]);
    for (const table of used) table.acquire();
    const missing = this.#parts.manifest.setAside.filter(
      entry => kinds.includes(entry.kind) && overlaps(entry, range),
    );
    return {
      toSql: (search, savesMemory) => {
        const definitions = tablesByKind.map(({ kind, tables, spare }) => {
          const needed = tables.filter(table => search?.conditionOn(table) !== 'false');
          const selects = (needed.length === 0 ? [spare] : needed).map(table =>
            this.#selectFrom(table, search?.conditionOn(table)),
          );
          return `${kind}_logs as not materialized (${selects.join(' union all ')})`;
        });
        return insertDefinitions(savesMemory ? parseLargeMetadataAlone(sql) : sql, definitions);
      },
      parts: used.filter(table => table instanceof Part),
      missingParts: missing.length,
      release() {
        for (const table of used) table.release();
      },
    };
  }

  #selectFrom(table: QueryTable, condition?: string): string {
    const isPart = table instanceof Part;
    const { expiredBefore } = this.#parts.manifest;
    const conditions = isPart ? [] : [`$${PLANNED_WHEN_RUN} is null`];
    if (expiredBefore !== undefined && !(isPart && table.entry.since >= expiredBefore))
      conditions.push(`timestamp >= make_timestamp(${expiredBefore}::bigint)`);
    if (condition !== undefined) conditions.push(condition);
    return `from ${table.name}${conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`}`;
  }
}

function insertDefinitions(sql: string, definitions: readonly string[]): string {
  if (definitions.length === 0) return sql;
  const [text = '', comments = '', keyword] = START.exec(sql) ?? [];
  const [list, rest] = [definitions.join(', '), sql.slice(text.length)];
  return keyword === undefined ? `${comments}with ${list} ${rest}` : `${comments}${keyword} ${list}, ${rest}`;
}

function overlaps(
  { since, until }: { readonly since: bigint; readonly until: bigint },
  { start, end }: TimeRange = {},
): boolean {
  return (start === undefined || until >= start) && (end === undefined || since <= end);
}
