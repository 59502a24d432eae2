// Copies records to a part in batches, sorted by project and then newest first. Sorting 122,880 records at once took 300 MB more memory than sorting them in batches, and was not faster.
import {
  type DuckDBConnection,
  type DuckDBListValue,
  DuckDBTimestampValue,
  type DuckDBValue,
} from './driver.ts';
import type { StoreConnection } from './run-long.ts';

/**
 * Newest first within a project, because the endpoint logs.all returns the newest 100 records: as soon as DuckDB has 100, it
 * skips every row group with only older records. In ascending order each record would replace one of the 100 found before.
 */
const PART_ORDER = 'order by project, timestamp desc';

/** The approximate size of the records that are sorted at once. */
const BATCH_BYTES = 16 * 1024 * 1024;

/** Called after each batch with the milliseconds it took, and how many records it had. */
export type AfterBatch = (ms: number, records: number) => Promise<void>;

/** All records of the projects from `first` to `last`, or those of one project from `since` to before `until`. */
interface Batch {
  readonly first: string;
  readonly last: string;
  readonly since: DuckDBTimestampValue | null;
  readonly until: DuckDBTimestampValue | null;
}

/** A condition on records, as SQL with named parameters. */
export interface Condition {
  readonly sql: string;
  readonly values: Readonly<Record<string, DuckDBValue>>;
}

/**
 * Copies in PART_ORDER, without the records that match `except`. `from` is a table or a subquery; `recordBytes` is the average
 * size of a record. Returns the number of copied records.
 */
export async function copySorted(
  connection: StoreConnection,
  from: string,
  to: string,
  recordBytes: number,
  afterBatch: AfterBatch = async () => {},
  except: Condition = { sql: 'false', values: {} },
): Promise<number> {
  let copied = 0;
  const batchRows = Math.ceil(BATCH_BYTES / Math.max(1, recordBytes));
  for (const { first, last, since, until } of await cutBatches(connection, from, batchRows)) {
    const startedAt = performance.now();
    const { rowsChanged } = await connection.runLong(
      `insert into ${to} from ${from}
      where project between $first and $last
        and ($since is null or timestamp >= $since) and ($until is null or timestamp < $until)
        and not (${except.sql}) ${PART_ORDER}`,
      { first, last, since, until, ...except.values },
    );
    copied += rowsChanged;
    await afterBatch(performance.now() - startedAt, rowsChanged);
  }
  return copied;
}

/** Returns batches of about `batchRows` records, in the order of the sorted copy. */
async function cutBatches(connection: DuckDBConnection, from: string, batchRows: number): Promise<Batch[]> {
  const result = await connection.runAndReadAll(
    `select project, count(*) from ${from} group by project order by project`,
  );
  const batches: Batch[] = [];
  let open: { first: string; last: string; rows: number } | undefined;
  const close = () => {
    if (open !== undefined) batches.push({ first: open.first, last: open.last, since: null, until: null });
    open = undefined;
  };
  for (const row of result.getRows()) {
    const [project, rows] = [String(row[0]), Number(row[1])];
    if (open !== undefined && open.rows + rows > batchRows) close();
    if (rows > batchRows) batches.push(...(await cutProject(connection, from, project, rows / batchRows)));
    else open = { first: open?.first ?? project, last: project, rows: (open?.rows ?? 0) + rows };
  }
  close();
  return batches;
}

/** Cuts the records of one project by time into about `count` batches, newest first. */
async function cutProject(
  connection: DuckDBConnection,
  from: string,
  project: string,
  count: number,
): Promise<Batch[]> {
  const shares = Array.from({ length: Math.ceil(count) - 1 }, (_, index) => (index + 1) / Math.ceil(count));
  const result = await connection.runAndReadAll(
    `select list_distinct(quantile_disc(timestamp, [${shares}])) from ${from} where project = $project`,
    { project },
  );
  const cuts = ((result.value(0, 0) as DuckDBListValue | null)?.items ?? [])
    .map(cut => (cut as DuckDBTimestampValue).micros)
    .sort((a, b) => (a < b ? 1 : -1))
    .map(micros => new DuckDBTimestampValue(micros));
  return [null, ...cuts].map((until, index) => ({
    first: project,
    last: project,
    since: cuts[index] ?? null,
    until,
  }));
}
