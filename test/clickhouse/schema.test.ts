import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { metadataFieldsOf } from '../../src/domain/log-fields.ts';
import { migrations, renderSchema } from '../../src/store/clickhouse/schema.ts';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { INDEXED_TEXT } from '../../src/store/log-sql.ts';
import { applyClickHouseSchema, openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { newDatabaseUrl } from '../support/clickhouse.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { runSql } from './run-sql.ts';

describe('dendro schema clickhouse --apply', () => {
  let clickhouse: ClickHouseUrl;
  beforeAll(() => {
    clickhouse = newDatabaseUrl();
  });
  afterAll(() => runSql(clickhouse, `drop database if exists ${clickhouse.database}`));

  const createStatementOf = async (name: string) =>
    (await runSql(clickhouse, `show create table ${name}`))[0]?.[0];

  test('creates a database that does not exist, with a table for each kind', async () => {
    expect(await applyClickHouseSchema(clickhouse, 30)).toEqual([1, 2]);
    const tables = (await runSql(clickhouse, 'show tables')).flat();
    expect(tables).toHaveLength(10);
    expect(await createStatementOf('edge_logs')).toMatch(
      /ORDER BY \(project, timestamp\)[\s\S]*toIntervalDay\(30\)/,
    );
  });

  test('changes only the retention when it runs again', async () => {
    expect(await applyClickHouseSchema(clickhouse, 7)).toEqual([]);
    expect(await createStatementOf('edge_logs')).toContain('toIntervalDay(7)');
    expect(await runSql(clickhouse, 'select version from dendro_schema order by 1')).toEqual([[1], [2]]);
  });

  test('creates tables that expire records after the retention', async () => {
    const row = (id: string, seconds: string) =>
      `('${id}', toInt64(toUnixTimestamp(now() - ${seconds})) * 1000000, 'p', '', '{}')`;
    await runSql(
      clickhouse,
      `insert into auth_logs (id, timestamp, project, event_message, metadata) values ${row('young', '60')}, ${row('old', '86400 * 30')}`,
    );
    await runSql(clickhouse, 'optimize table auth_logs final');
    expect(await runSql(clickhouse, 'select id from auth_logs')).toEqual([['young']]);
  });

  test('creates an index with which a search reads only the granules that can match', async () => {
    await runSql(
      clickhouse,
      `insert into rest_logs (id, timestamp, project, event_message, metadata)
        select toString(number), toInt64(toUnixTimestamp(now())) * 1000000, 'p', 'of ' || number, if(number = 20000, '{"a":"\u212anee"}', '{}')
        from numbers(40000)`,
    );
    const plan = async (text: string) =>
      (
        await runSql(
          clickhouse,
          `select * from (explain indexes = 1 select id from rest_logs where ${INDEXED_TEXT} like '%${text}%')`,
        )
      ).join('\n');
    expect(await plan('knee')).toMatch(/text_index[\s\S]*Granules: 1\/5/);
    expect(await plan('zebra')).toMatch(/text_index[\s\S]*Granules: 0\/5/);
  });

  test('creates a missing table again, with the current retention', async () => {
    await runSql(clickhouse, 'drop table edge_logs');
    expect(await applyClickHouseSchema(clickhouse, 7)).toEqual([]);
    expect(await createStatementOf('edge_logs')).toContain('toIntervalDay(7)');
  });

  test('removes the TTL of existing tables if the retention is too long for a TTL', async () => {
    for (let run = 0; run < 2; run++) {
      await applyClickHouseSchema(clickhouse, 36_500);
      expect(await createStatementOf('rest_logs')).not.toContain('TTL');
      expect(await createStatementOf('auth_logs')).not.toContain('TTL');
    }
  });

  test('creates tables without a TTL if the retention is too long for a TTL', async () => {
    const other = newDatabaseUrl();
    await applyClickHouseSchema(other, 36_500);
    const [create] = await runSql(other, 'show create table edge_logs');
    expect(create?.[0]).not.toContain('TTL');
    await runSql(other, `drop database ${other.database}`);
  });

  test('waits for a statement that takes longer than the time limit of a ping', async () => {
    const other = newDatabaseUrl();
    const proxy = await FaultyProxy.open(other);
    try {
      await proxy.set('slow', 'dendro_schema (version) values');
      expect(await applyClickHouseSchema({ ...other, urls: [proxy.url] }, 30)).toEqual([1, 2]);
    } finally {
      await proxy.close();
      await runSql(other, `drop database ${other.database}`);
    }
  });

  describe('on tables of schema version 1', () => {
    let old: ClickHouseUrl;
    beforeAll(async () => {
      old = newDatabaseUrl();
      await applyClickHouseSchema(old, 36_500);
      for (const kind of LOG_KINDS)
        for (const { column } of metadataFieldsOf(kind))
          await runSql(old, `alter table ${kind}_logs drop column ${column}`);
      await runSql(old, 'delete from dendro_schema where version = 2');
    });
    afterAll(() => runSql(old, `drop database ${old.database}`));

    const insert = (id: string, metadata: string) =>
      runSql(
        old,
        `insert into storage_logs (id, timestamp, project, event_message, metadata) values ('${id}', 1, 'p', '', '${metadata}')`,
      );

    test('a start without the columns names the command that adds them', async () => {
      const directory = createDataDirectory();
      const store = await openStore({ ...testStoreOptions(directory), clickhouse: old });
      expect(await store.preflight?.()).toMatch(
        /cannot read from edge_logs.*run `dendro schema clickhouse --apply`.*field_status/,
      );
      await store.close();
      removeDataDirectory(directory);
    });

    test('adds the columns of searchable fields, also for stored records and for inserts without them', async () => {
      await insert('before', '{"req":{"url":"/a?b"},"res":{"statusCode":500}}');
      expect(await applyClickHouseSchema(old, 36_500)).toEqual([2]);
      await insert('after', '{"req":[{"url":"/c?d"}],"res.statusCode":"404"}');
      const rows = 'select id, field_path, field_status, field_host from storage_logs order by id';
      const expected = [
        ['after', '/c', '404', null],
        ['before', '/a', '500', null],
      ];
      expect(await runSql(old, rows)).toEqual(expected);
      await runSql(old, 'optimize table storage_logs final');
      expect(await runSql(old, rows)).toEqual(expected);
    });
  });

  test('rejects a database of a newer version of Dendro', async () => {
    await runSql(clickhouse, 'insert into dendro_schema (version) values (99)');
    await expect(applyClickHouseSchema(clickhouse, 7)).rejects.toThrow(/version 99.*upgrade Dendro/);
  });
});

describe('the schema of a cluster', () => {
  const options = { database: 'dendro', cluster: 'logs', retentionDays: 90 };

  test('is valid SQL for ClickHouse', async () => {
    const clickhouse = newDatabaseUrl();
    for (const statements of migrations(options))
      for (const statement of statements)
        await runSql({ ...clickhouse, database: 'default' }, `explain ast ${statement}`);
  });

  test('replicates each shard, and shards by project', () => {
    const text = renderSchema(options);
    expect(text).toContain(
      "ReplicatedMergeTree('/clickhouse/tables/{shard}/dendro/edge_logs_local', '{replica}')",
    );
    expect(text).toContain("Distributed('logs', dendro, edge_logs_local, sipHash64(project))");
    expect(text).not.toContain('{{');
  });
});
