// The checksum of records: the sum of their hashes. It does not depend on the order of the records, and the checksum of a merged
// part is the sum of the checksums of its sources.
import { columnsOf, type LogKind } from '../../domain/log-columns.ts';
import type { AfterBatch, Condition } from './copy-records.ts';
import type { DuckDBConnection, DuckDBValue } from './driver.ts';

/** The size of a full row group in DuckDB. */
export const ROW_GROUP_ROWS = 122_880;
/** Records with at least this many bytes of text are large (rewriter.ts). */
export const LARGE_RECORD_BYTES = 32 * 1024;

/** What a table contains. */
export interface TableContent {
  readonly rows: number;
  readonly sum: bigint;
  /** The oldest and the newest timestamp, in Unix microseconds. Undefined if the table is empty. */
  readonly since: bigint | undefined;
  readonly until: bigint | undefined;
  /** The size of all messages and metadata, and of those in large records. */
  readonly textBytes: number;
  readonly largeTextBytes: number;
}

export const EMPTY: TableContent = {
  rows: 0,
  sum: 0n,
  since: undefined,
  until: undefined,
  textBytes: 0,
  largeTextBytes: 0,
};

/** Reads a table in batches of one row group, without the records that match `except`. */
export async function readContent(
  connection: DuckDBConnection,
  kind: LogKind,
  table: string,
  afterBatch?: AfterBatch,
  except?: Condition,
): Promise<TableContent> {
  return (await readContentBy('0', connection, kind, table, afterBatch, except)).get(0n) ?? EMPTY;
}

/** The same for each value of `group`, an SQL expression. `table` can be a subquery that has `rowid`. */
export async function readContentBy(
  group: string,
  connection: DuckDBConnection,
  kind: LogKind,
  table: string,
  afterBatch: AfterBatch = async () => {},
  except: Condition = { sql: 'false', values: {} },
): Promise<ReadonlyMap<bigint, TableContent>> {
  const columns = columnsOf(kind).map(({ name }) => name);
  const span = await connection.runAndReadAll(`select min(rowid), max(rowid) from ${table}`);
  const [first, last] = [Number(span.value(0, 0) ?? 0), Number(span.value(1, 0) ?? -1)];
  const totals = new Map<bigint, TableContent>();
  for (let start = first; start <= last; start += ROW_GROUP_ROWS) {
    const startedAt = performance.now();
    // A sum and not an exclusive or, in which two equal records would cancel each other out.
    const result = await connection.runAndReadAll(
      `select ${group}, count(*), coalesce(sum(hash(${columns.join(', ')})::hugeint), 0),
        epoch_us(min(timestamp)), epoch_us(max(timestamp)),
        coalesce(sum(bytes), 0), coalesce(sum(bytes) filter (bytes >= ${LARGE_RECORD_BYTES}), 0)
      from (select *, strlen(event_message) + strlen(metadata) as bytes from ${table}
        where rowid >= ${start} and rowid < ${start + ROW_GROUP_ROWS} and not (${except.sql}))
      group by all`,
      { ...except.values },
    );
    let records = 0;
    for (const row of result.getRows()) {
      const [key = 0n, rows = 0n, sum = 0n, since, until, textBytes, largeTextBytes] = row.map(toBigInt);
      const [text, large] = [Number(textBytes), Number(largeTextBytes)];
      const content = { rows: Number(rows), sum, since, until, textBytes: text, largeTextBytes: large };
      totals.set(key, addContents(totals.get(key) ?? EMPTY, content));
      records += content.rows;
    }
    await afterBatch(performance.now() - startedAt, records);
  }
  return totals;
}

export function addContents(one: TableContent, other: TableContent): TableContent {
  return {
    rows: one.rows + other.rows,
    sum: one.sum + other.sum,
    since: one.since === undefined || (other.since ?? one.since) < one.since ? other.since : one.since,
    until: one.until === undefined || (other.until ?? one.until) > one.until ? other.until : one.until,
    textBytes: one.textBytes + other.textBytes,
    largeTextBytes: one.largeTextBytes + other.largeTextBytes,
  };
}

function toBigInt(value: DuckDBValue): bigint | undefined {
  return value === null ? undefined : BigInt(String(value));
}
