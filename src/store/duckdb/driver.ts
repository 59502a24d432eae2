// DuckDB's driver. It is written in CommonJS; to import such a module, Node first looks through all of its files for names,
// which takes as long as to load it. So it is required.
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
