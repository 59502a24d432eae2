import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrations, printSchema } from '../../src/store/clickhouse/schema.ts';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { applyClickHouseSchema } from '../../src/store/open-store.ts';
import { newDatabase } from '../support/clickhouse.ts';
import { ask } from './ask.ts';

describe('dendro schema clickhouse --apply', () => {
  let address: ClickHouseUrl;
  beforeAll(() => {
    address = newDatabase();
  });
  afterAll(() => ask(address, `drop database if exists ${address.database}`));

  const tableOf = async (name: string) => (await ask(address, `show create table ${name}`))[0]?.[0];

  test('makes a database that is not there, with a table for each kind', async () => {
    expect(await applyClickHouseSchema(address, 30)).toEqual([1]);
    const tables = (await ask(address, 'show tables')).flat();
    expect(tables).toHaveLength(10);
    expect(await tableOf('edge_logs')).toMatch(/ORDER BY \(project, timestamp\)[\s\S]*toIntervalDay\(30\)/);
  });

  test('does nothing when it is run again, but for the retention', async () => {
    expect(await applyClickHouseSchema(address, 7)).toEqual([]);
    expect(await tableOf('edge_logs')).toContain('toIntervalDay(7)');
    expect(await ask(address, 'select version from dendro_schema')).toEqual([[1]]);
  });

  test('keeps records within the retention and drops older ones by itself', async () => {
    const row = (id: string, seconds: string) =>
      `('${id}', toInt64(toUnixTimestamp(now() - ${seconds})) * 1000000, 'p', '', '{}')`;
    await ask(address, `insert into auth_logs values ${row('young', '60')}, ${row('old', '86400 * 30')}`);
    await ask(address, 'optimize table auth_logs final');
    expect(await ask(address, 'select id from auth_logs')).toEqual([['young']]);
  });

  test('restores a table that is missing, with the retention of today', async () => {
    await ask(address, 'drop table edge_logs');
    expect(await applyClickHouseSchema(address, 7)).toEqual([]);
    expect(await tableOf('edge_logs')).toContain('toIntervalDay(7)');
  });

  test('a retention that ClickHouse cannot count to ends the one before', async () => {
    for (let run = 0; run < 2; run++) {
      await applyClickHouseSchema(address, 36_500);
      expect(await tableOf('rest_logs')).not.toContain('TTL');
      expect(await tableOf('auth_logs')).not.toContain('TTL');
    }
  });

  test('a retention that ClickHouse cannot count to drops nothing', async () => {
    const other = newDatabase();
    await applyClickHouseSchema(other, 36_500);
    const [create] = await ask(other, 'show create table edge_logs');
    expect(create?.[0]).not.toContain('TTL');
    await ask(other, `drop database ${other.database}`);
  });

  test('refuses a database that a newer program made', async () => {
    await ask(address, 'insert into dendro_schema (version) values (99)');
    await expect(applyClickHouseSchema(address, 7)).rejects.toThrow(/version 99.*use a newer Dendro/);
  });
});

describe('the schema of a cluster', () => {
  const options = { database: 'dendro', cluster: 'logs', retentionDays: 90 };

  test('is what ClickHouse reads, statement by statement', async () => {
    const address = newDatabase();
    for (const { statements } of migrations(options))
      for (const statement of statements)
        await ask({ ...address, database: 'default' }, `explain ast ${statement}`);
  });

  test('replicates what a shard holds, and shards by project', () => {
    const text = printSchema(options);
    expect(text).toContain(
      "ReplicatedMergeTree('/clickhouse/tables/{shard}/dendro/edge_logs_local', '{replica}')",
    );
    expect(text).toContain("Distributed('logs', dendro, edge_logs_local, sipHash64(project))");
    expect(text).not.toContain('{{');
  });
});
