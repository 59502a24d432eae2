// Which tables a query reads. An endpoint's SQL names edge_logs and so on. Each is defined by a common table expression before the
// SQL: the union of the kind's memtables and of those parts that overlap the time range of the query.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { TimeRange } from '../store.ts';
import type { Memtables } from './memtables.ts';
import { Part, type Parts } from './parts.ts';
import { PLANNED_WHEN_RUN } from './saved-query.ts';
import type { Source } from './source.ts';

/** The tables of one query. The caller must call `release` when the query has finished. */
export interface QueryTables {
  readonly sql: string;
  readonly parts: readonly Part[];
  /** Parts with records of the range that were set aside, so that the result lacks these records. */
  readonly missingParts: number;
  release(): void;
}

const GAP = '(?:\\s|--[^\\n]*(?:\\n|$)|/\\*[\\s\\S]*?\\*/)*'; // white space and comments
const START = new RegExp(`^(${GAP})(with\\b${GAP}recursive\\b|with\\b)?`, 'i');

export class QueryTableSelector {
  readonly #memtables: Memtables;
  readonly #parts: Parts;

  constructor(memtables: Memtables, parts: Parts) {
    this.#memtables = memtables;
    this.#parts = parts;
  }

  /** From now on until `release`, the tables are neither dropped nor deleted. */
  select(sql: string, range?: TimeRange): QueryTables {
    const kinds = listKinds(sql);
    const parts: Part[] = [];
    const used: Source[] = [];
    const definitions = kinds.map(kind => {
      const memtables = this.#memtables.list(kind);
      const partsOfKind = this.#parts.list(kind).filter(({ entry }) => overlaps(entry, range));
      parts.push(...partsOfKind);
      const tables = [...memtables, ...partsOfKind];
      if (tables.length === 0) tables.push(this.#memtables.activeTable(kind));
      used.push(...tables);
      return `${kind}_logs as not materialized (${tables.map(table => this.#selectFrom(table)).join(' union all ')})`;
    });
    for (const source of used) source.acquire();
    const missing = this.#parts.manifest.setAside.filter(
      entry => kinds.includes(entry.kind) && overlaps(entry, range),
    );
    return {
      sql: insertDefinitions(sql, definitions),
      parts,
      missingParts: missing.length,
      release() {
        for (const source of used) source.release();
      },
    };
  }

  #selectFrom(source: Source): string {
    const isPart = source instanceof Part;
    const { expiredBefore } = this.#parts.manifest;
    const conditions = isPart ? [] : [`$${PLANNED_WHEN_RUN} is null`];
    if (expiredBefore !== undefined && !(isPart && source.entry.since >= expiredBefore))
      conditions.push(`timestamp >= make_timestamp(${expiredBefore}::bigint)`);
    return `from ${source.table}${conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`}`;
  }
}

/** The kinds whose tables the SQL may read: those that it names anywhere. */
function listKinds(sql: string): readonly LogKind[] {
  const names = [...sql.matchAll(/\b(\w+)_logs\b/gi)].map(([, name]) => name?.toLowerCase());
  return LOG_KINDS.filter(kind => names.includes(kind));
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
