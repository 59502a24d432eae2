// Runs the long statements of writers without DuckDB's busy waiting. `run` executes a statement on a thread of Node and on DuckDB's
// own threads. When DuckDB's threads have taken the last tasks, the thread of Node waits for them in a loop that keeps a core
// busy (github.com/duckdb/duckdb/issues/22178). On two cores that took a fourth of the CPU time of intake. `runLong` lets
// DuckDB's threads execute the statement, and looks every millisecond whether they have finished. See
// docs/decisions/0030-duckdb-waiting-loop.md.
import { setTimeout as sleep } from 'node:timers/promises';
import { bindings, type DuckDBConnection, type DuckDBResult, type DuckDBValue } from './driver.ts';

export interface StoreConnection extends DuckDBConnection {
  /** Runs a statement without busy waiting. */
  runLong(sql: string, values: Record<string, DuckDBValue>): Promise<DuckDBResult>;
}

const POLL_MS = 1;
/** DuckDB's threads may be busy with long queries. After this many polls, a thread of Node helps to execute the statement. */
const MAX_POLLS = 500;

/**
 * Adds a `runLong` that does not busy-wait. It plans the statement on the main thread, which takes one to two milliseconds. The
 * connection must run one statement at a time. `threads` is DuckDB's setting. With 1, `runLong` is the same as `run`.
 */
export function addRunLong(connection: DuckDBConnection, threads: number): StoreConnection {
  const runLong: StoreConnection['runLong'] = (sql, values) =>
    threads > 1 ? runOnDuckdbThreads(connection, sql, values) : connection.run(sql, values);
  return Object.assign(connection, { runLong });
}

async function runOnDuckdbThreads(
  connection: DuckDBConnection,
  sql: string,
  values: Record<string, DuckDBValue>,
): Promise<DuckDBResult> {
  const statement = await connection.prepare(sql);
  try {
    statement.bind(values);
    const pending = statement.start();
    for (let polls = 0; polls < MAX_POLLS && !isFinished(pending); polls++) await sleep(POLL_MS);
    const message = errorOf(pending);
    const result = pending.getResult();
    if (message === '') return await result;
    await result.catch(() => {}); // this error says only that the statement has failed
    throw new Error(message);
  } finally {
    statement.destroySync();
  }
}

/**
 * For a finished statement DuckDB returns the state ERROR, even if it has succeeded. So every state counts as finished, except
 * the two of a statement that is still running.
 */
function isFinished(pending: object): boolean {
  const state = bindings.pending_execute_check_state(handleOf(pending));
  const { RESULT_NOT_READY, NO_TASKS_AVAILABLE } = bindings.PendingState;
  return state !== RESULT_NOT_READY && state !== NO_TASKS_AVAILABLE;
}

/** Empty if the statement has not failed. */
function errorOf(pending: object): string {
  return bindings.pending_error(handleOf(pending)) ?? '';
}

function handleOf(pending: object): unknown {
  return (pending as { pending_result: unknown }).pending_result;
}
