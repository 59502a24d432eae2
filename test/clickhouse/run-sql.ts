// Runs a statement directly on ClickHouse, not through the store under test.
import { ClickHouseLogLevel, createClient } from '@clickhouse/client';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';

/** Returns the rows of a SELECT or SHOW, and no rows for other statements. */
export async function runSql(clickhouse: ClickHouseUrl, sql: string): Promise<unknown[][]> {
  const client = createClient({
    url: clickhouse.urls[0] ?? '',
    username: clickhouse.writer.user,
    password: clickhouse.writer.password,
    database: clickhouse.database,
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
  });
  try {
    if (!/^(select|show)/i.test(sql)) {
      await client.command({ query: sql });
      return [];
    }
    return (await (await client.query({ query: sql, format: 'JSONCompact' })).json<unknown[]>()).data;
  } finally {
    await client.close();
  }
}
