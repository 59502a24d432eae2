// Which tables a query reads. An endpoint's SQL names edge_logs and so on. Each is defined by a common table expression before the
// SQL: the union of the kind's memtables and of those parts that overlap the time range of the query.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { BoundValues, TimeRange } from '../store.ts';
import type { Memtables } from './memtables.ts';
import { Part, type Parts } from './parts.ts';
import type { Source } from './source.ts';

/**
 * A condition on memtables, with a parameter whose type is known only from its value (null), so that DuckDB plans the query when it
 * runs. A plan has statistics of its tables, such as the lengths of texts, and returns wrong rows if a memtable has grown since.
 */
const PLANNED_WHEN_RUN = '$planned_when_run is null';
export const PLANNED_WHEN_RUN_VALUES: BoundValues = { planned_when_run: { type: 'text', value: null } };

/** The tables of one query. The caller must call `release` when the query has finished. */
export interface QueryTables {
  readonly sql: string;
  readonly parts: readonly Part[];
  /** Parts with records of the range that were set aside, so that the result lacks these records. */
  readonly missingParts: number;
  release(): void;
}

/** Where the definitions are inserted into an endpoint's SQL. */
interface ParsedSql {
  readonly kinds: readonly LogKind[];
  readonly start: string;
  readonly rest: string;
}

/** Comments and white space, then an optional WITH. */
const START = /^((?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*)(with\s+recursive\b|with\b)?/i;
/** Endpoints are few; searches add no SQL texts. */
const MAX_PARSED = 1_000;

export class QueryTableSelector {
  readonly #memtables: Memtables;
  readonly #parts: Parts;
  readonly #parsed = new Map<string, ParsedSql>();

  constructor(memtables: Memtables, parts: Parts) {
    this.#memtables = memtables;
    this.#parts = parts;
  }

  /** From now on until `release`, the tables are neither dropped nor deleted. */
  select(sql: string, range?: TimeRange): QueryTables {
    const parsed = this.#parse(sql);
    const parts: Part[] = [];
    const used: Source[] = [];
    const definitions = parsed.kinds.map(kind => {
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
      entry => parsed.kinds.includes(entry.kind) && overlaps(entry, range),
    );
    return {
      sql: insert(parsed, definitions),
      parts,
      missingParts: missing.length,
      release() {
        for (const source of used) source.release();
      },
    };
  }

  #selectFrom(source: Source): string {
    if (!(source instanceof Part)) return `from ${source.table} where ${PLANNED_WHEN_RUN}`;
    const { expiredBefore } = this.#parts.manifest;
    const hasExpired = expiredBefore !== undefined && source.entry.since < expiredBefore;
    const condition = hasExpired ? ` where timestamp >= make_timestamp(${expiredBefore}::bigint)` : '';
    return `from ${source.table}${condition}`;
  }

  #parse(sql: string): ParsedSql {
    const known = this.#parsed.get(sql);
    if (known !== undefined) return known;
    const [text = '', comments = '', keyword = ''] = START.exec(sql) ?? [];
    const parsed = {
      kinds: LOG_KINDS.filter(kind => new RegExp(`\\b${kind}_logs\\b`, 'i').test(sql)),
      start: `${comments}${keyword === '' ? 'with' : keyword} `,
      rest: `${keyword === '' ? ' ' : ', '}${sql.slice(text.length)}`,
    };
    if (this.#parsed.size >= MAX_PARSED) this.#parsed.clear();
    this.#parsed.set(sql, parsed);
    return parsed;
  }
}

function insert({ start, rest }: ParsedSql, definitions: readonly string[]): string {
  if (definitions.length > 0) return `${start}${definitions.join(', ')}${rest}`;
  return rest.startsWith(',') ? `${start}${rest.slice(1)}` : `${rest}`;
}

function overlaps(
  { since, until }: { readonly since: bigint; readonly until: bigint },
  { start, end }: TimeRange = {},
): boolean {
  return (start === undefined || until >= start) && (end === undefined || since <= end);
}
