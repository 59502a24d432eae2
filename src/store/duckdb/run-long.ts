// Runs the long statements of writers without DuckDB's busy waiting. `run` executes a statement on a thread of Node and on DuckDB's
// own threads. When these have taken the last tasks, the thread of Node waits for them in a loop that keeps a core busy
// (github.com/duckdb/duckdb/issues/22178). On two cores that took a fourth of the CPU time of intake. `runLong` lets DuckDB's threads
// execute the statement, and looks every millisecond whether they have finished.
import { setTimeout as sleep } from 'node:timers/promises';
import { bindings, type DuckDBConnection, type DuckDBResult, type DuckDBValue } from './driver.ts';

export interface WriterConnection extends DuckDBConnection {
  /** Like `run`, but the start of the statement, one to two milliseconds, runs on the main thread. */
  runLong(sql: string, values: Record<string, DuckDBValue>): Promise<DuckDBResult>;
}

const POLL_MS = 1;
/** If DuckDB's threads are busy with other statements, a thread of Node executes this one after this time. */
const JOIN_AFTER_MS = 500;

/** `threads`: of DuckDB, including one of the caller. */
export function addRunLong(connection: DuckDBConnection, threads: number): WriterConnection {
  const runLong: WriterConnection['runLong'] = (sql, values) =>
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
    const joinAt = performance.now() + JOIN_AFTER_MS;
    while (!isFinished(pending) && performance.now() < joinAt) await sleep(POLL_MS);
    return await pending.getResult();
  } finally {
    statement.destroySync();
  }
}

/** Throws the error of a statement that has failed: after this check, `getResult` would throw another one. */
function isFinished(pending: object): boolean {
  const { pending_result: handle } = pending as {
    pending_result: Parameters<typeof bindings.pending_error>[0];
  };
  const state = bindings.pending_execute_check_state(handle);
  const { RESULT_NOT_READY, NO_TASKS_AVAILABLE } = bindings.PendingState;
  if (state === RESULT_NOT_READY || state === NO_TASKS_AVAILABLE) return false;
  // A statement that has succeeded has the state ERROR too, but no error.
  const message = bindings.pending_error(handle);
  if (message) throw new Error(message);
  return true;
}
