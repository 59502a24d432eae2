// Loads DuckDB's driver with `require`. It is a CommonJS module: for an `import`, Node would search all of its files for export
// names first, which takes as long as loading it.
import { createRequire } from 'node:module';
import { TextDecoder } from 'node:util';
import type * as driver from '@duckdb/node-api';

export type {
  DuckDBConnection,
  DuckDBListValue,
  DuckDBType,
  DuckDBValue,
} from '@duckdb/node-api';

const require = createRequire(import.meta.url);

// The driver drops a U+FEFF from the start of every text: its decoder takes the character for a byte order mark. This decoder
// keeps it. The store's contract tests fail if a version of the driver no longer reads this property.
const accessors = require('@duckdb/node-api/lib/vectors/dataAccessors.js') as { textDecoder: TextDecoder };
accessors.textDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

export const {
  BIGINT,
  BLOB,
  BOOLEAN,
  DuckDBBlobValue,
  DuckDBDataChunk,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTypeId,
  INTEGER,
  LIST,
  listValue,
  ResultReturnType,
  StatementType,
  TIMESTAMP,
  VARCHAR,
} = require('@duckdb/node-api') as typeof driver;
export type DuckDBBlobValue = driver.DuckDBBlobValue;
export type DuckDBDataChunk = driver.DuckDBDataChunk;
export type DuckDBInstance = driver.DuckDBInstance;
export type DuckDBPreparedStatement = driver.DuckDBPreparedStatement;
export type DuckDBResult = driver.DuckDBResult;
export type DuckDBTimestampValue = driver.DuckDBTimestampValue;

/** What run-long.ts uses of @duckdb/node-bindings, on which the driver is built. The driver does not export it. */
interface Bindings {
  readonly PendingState: { readonly RESULT_NOT_READY: number; readonly NO_TASKS_AVAILABLE: number };
  pending_execute_check_state(pendingResult: unknown): number;
  /** Empty if there is no error. */
  pending_error(pendingResult: unknown): string;
}

export const bindings = createRequire(require.resolve('@duckdb/node-api'))(
  '@duckdb/node-bindings',
) as Bindings;
