// Statements that a test gives to ClickHouse itself, past the store.
import { ClickHouseLogLevel, createClient } from '@clickhouse/client';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';

export async function ask(address: ClickHouseUrl, query: string): Promise<unknown[][]> {
  const client = createClient({
    url: address.urls[0] ?? '',
    username: address.writer.user,
    password: address.writer.password,
    database: address.database,
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
  });
  try {
    if (!/^(select|show)/i.test(query)) {
      await client.command({ query });
      return [];
    }
    return (await (await client.query({ query, format: 'JSONCompact' })).json<unknown[]>()).data;
  } finally {
    await client.close();
  }
}
