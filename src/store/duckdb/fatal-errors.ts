// Detects that DuckDB has invalidated its file, such as after a failed fsync: every later statement fails until the program is
// restarted and opens the file again. All connections to this file are watched, so no caller has to look for these errors.
import { DendroError } from '../../domain/errors.ts';
import {
  DuckDBExtractedStatements,
  DuckDBPreparedStatement,
  DuckDBResult,
  DuckDBResultReader,
} from './driver.ts';

/**
 * Matches only error types that never quote the text of a client, so that no client can cause a match. Other types quote it, such
 * as the error for an invalid regular expression.
 */
const FATAL_ERROR = /^FATAL Error|^(IO|TransactionContext|INTERNAL) Error: .*has been invalidated/;

export type OnFatalError = (error: unknown) => void;

/** Calls `onFatalError` for each fatal error of a connection and its statements, before the caller gets `unavailable`. */
export function watchFatalErrors<T extends object>(target: T, onFatalError: OnFatalError): T {
  const watchResult = (result: unknown) =>
    canFail(result) ? watchFatalErrors(result, onFatalError) : result;
  const rethrow = (error: unknown): never => {
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
        return result instanceof Promise ? result.then(watchResult, rethrow) : result;
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
