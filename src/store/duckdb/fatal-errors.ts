// Detects that DuckDB has invalidated its file, such as after a failed fsync: every later statement fails until another process
// opens the file. All connections of the store are watched, so no caller has to look for these errors.
import { DendroError } from '../../domain/errors.ts';
import {
  type DuckDBConnection,
  DuckDBExtractedStatements,
  DuckDBPreparedStatement,
  DuckDBResult,
  DuckDBResultReader,
} from './driver.ts';

/** Matches only error types that never quote a text of a client. Others do, such as the error for an invalid regular expression. */
const FATAL_ERROR = /^FATAL Error|^(IO|TransactionContext|INTERNAL) Error: .*has been invalidated/;

export type OnFatalError = (error: unknown) => void;

/** Calls `onFatalError` for each fatal error of the connection and its statements, before the caller gets `unavailable`. */
export function watchFatalErrors<Connection extends DuckDBConnection>(
  connection: Connection,
  onFatalError: OnFatalError,
): Connection {
  return watch(connection, onFatalError);
}

function watch<T extends object>(target: T, onFatalError: OnFatalError): T {
  const watchResult = (result: unknown) => (canFail(result) ? watch(result, onFatalError) : result);
  const mapError = (error: unknown) => {
    if (!FATAL_ERROR.test((error as Error).message)) throw error;
    onFatalError(error);
    throw new DendroError('unavailable', 'the store has failed and must be opened again; retry later', {
      cause: error,
    });
  };
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args);
        return result instanceof Promise ? result.then(watchResult, mapError) : result;
      };
    },
  });
}

/** Whether the object can run SQL or read more of a result. */
function canFail(result: unknown): result is object {
  return (
    result instanceof DuckDBExtractedStatements ||
    result instanceof DuckDBPreparedStatement ||
    result instanceof DuckDBResult ||
    result instanceof DuckDBResultReader
  );
}
