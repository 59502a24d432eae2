// DuckDB's driver. It is a CommonJS module, and Node searches all files of such a module for export names before it imports it,
// which takes as long as loading it. `require` skips the search.
import { createRequire } from 'node:module';
import type * as driver from '@duckdb/node-api';

export type {
  DuckDBConnection,
  DuckDBListValue,
  DuckDBPreparedStatement,
  DuckDBType,
  DuckDBValue,
} from '@duckdb/node-api';

export const {
  BIGINT,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTypeId,
  StatementType,
  TIMESTAMP,
  VARCHAR,
} = createRequire(import.meta.url)('@duckdb/node-api') as typeof driver;
export type DuckDBInstance = driver.DuckDBInstance;
export type DuckDBTimestampValue = driver.DuckDBTimestampValue;
