import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import { ROW_GROUP_ROWS } from '../../src/store/duckdb/checksum.ts';
import { openStore } from '../../src/store/open-store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { edgeRecord, record } from '../support/record.ts';
import { batches, openTestStore, savedQuery, type TestStore } from '../support/store.ts';

const AT = '2026-11-14T12:34:56.789012Z';

describe('append', () => {
  let opened: TestStore;
  beforeAll(async () => {
    opened = await openTestStore();
  });
  afterAll(() => opened.close());

  test('queries with a limit, run during appends, return the records that were stored before', async () => {
    await opened.store.append(batches('pooler', [record({ id: 'early', at: AT, project: 'early' })]));
    const newest = "select id from pooler_logs where project = 'early' order by timestamp desc limit 100";
    const found = new Set<string>();
    let isDone = false;
    const queries = [1, 2].map(async () => {
      while (!isDone) found.add(JSON.stringify(await opened.rowsOf(newest, ['text'])));
    });
    const large = Array.from({ length: 100 }, () =>
      record({ at: AT, project: 'large', message: 'm'.repeat(50_000) }),
    );
    for (let run = 0; run < 6; run++) await opened.store.append(batches('pooler', large));
    isDone = true;
    await Promise.all(queries);
    expect([...found]).toEqual(['[["early"]]']);
  });

  describe('all or nothing', () => {
    const countOf = (project: string) =>
      opened.rowsOf(`select count(*) from postgres_logs where project = '${project}'`, ['integer']);

    test('append stores nothing if a later batch has a record that the store rejects', async () => {
      const good = record({ at: AT, project: 'rejected' });
      await expect(
        opened.store.append(batches('postgres', [good], [{ ...good, metadata: '{"broken":' }])),
      ).rejects.toThrow();
      expect(await countOf('rejected')).toEqual([[0]]);
    });

    test('an append succeeds after a failed one, and leaves no file in the staging directory', async () => {
      await opened.store.append(batches('postgres', [record({ at: AT, project: 'after' })]));
      expect(await countOf('after')).toEqual([[1]]);
      expect(readdirSync(join(opened.dataDirectory, 'staging'))).toEqual([]);
    });

    test('queries see nothing of an append before it is complete', async () => {
      let countBefore: unknown;
      const countingBatches = async function* () {
        const rowGroup = Array.from({ length: ROW_GROUP_ROWS }, () => record({ at: AT, project: 'unseen' }));
        yield toLogLines('postgres', rowGroup);
        countBefore = await countOf('unseen');
        yield toLogLines('postgres', rowGroup.slice(0, 2));
      };
      await opened.store.append(countingBatches());
      expect(countBefore).toEqual([[0]]);
      expect(await countOf('unseen')).toEqual([[ROW_GROUP_ROWS + 2]]);
    });
  });
});

describe('the cells of a result', () => {
  let opened: TestStore;
  beforeAll(async () => {
    opened = await openTestStore();
  });
  afterAll(() => opened.close());

  test.each([
    ['an integer', '7::bigint', 'integer', 7],
    [
      'an integer that a double cannot represent',
      '170141183460469231731687303715884105727::hugeint',
      'integer',
      2n ** 127n - 1n,
    ],
    ['a decimal', '1.25::decimal(9, 2)', 'number', 1.25],
    ['a double', '1e300::double', 'number', 1e300],
    ['null for infinity, which JSON does not have', "'infinity'::double", 'number', null],
    ['null for NaN, which JSON does not have', "'nan'::double", 'number', null],
    ['a timestamp before 1970', "timestamp '1969-12-31 23:59:59.999999'", 'unix_microseconds', -1n],
    [
      'a timestamp with an offset',
      "timestamptz '2026-11-14 12:00:00+02'",
      'utc_datetime',
      micros('2026-11-14T10:00:00Z'),
    ],
    [
      'a UUID',
      "'36d4086c-7022-4186-9a0f-e33ec7d730da'::uuid",
      'text',
      '36d4086c-7022-4186-9a0f-e33ec7d730da',
    ],
    ['null', 'null::integer', 'integer', null],
  ] as const)('a cell can be %s', async (_, expression, type, expected) => {
    expect(await opened.rowsOf(`select ${expression}`, [type])).toEqual([[expected]]);
  });
});

describe('closing and opening', () => {
  const directory = useDirectory();
  const open = () => openStore(testStoreOptions(directory));

  test('opening removes the temporary files that a killed process left', async () => {
    await (await open()).close();
    mkdirSync(join(directory, 'tmp'));
    writeFileSync(join(directory, 'tmp', 'duckdb_temp_storage_DEFAULT-0.tmp'), 'records');
    writeFileSync(join(directory, 'staging', 'edge.ndjson'), 'half a li');
    await (await open()).close();
    expect(readdirSync(join(directory, 'staging'))).toEqual([]);
    expect(existsSync(join(directory, 'tmp'))).toBe(false);
  });

  test('close waits for a running append', async () => {
    const store = await open();
    const append = store.append(batches('edge', [edgeRecord({ at: AT })], [edgeRecord({ at: AT })]));
    await store.close();
    await append;
    const again = await open();
    const { rows } = await again.query(savedQuery('select count(*) from edge_logs', ['integer']), {});
    expect(rows).toEqual([[2]]);
    await again.close();
  });
});
