// Loads DuckDB's driver with `require`. It is a CommonJS module: for an `import`, Node would search all of its files for export
// names first, which takes as long as loading it.
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
