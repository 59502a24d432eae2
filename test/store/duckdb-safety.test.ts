import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Column } from '../../src/store/store.ts';
import { micros } from '../support/app.ts';
import { edgeRecord } from '../support/record.ts';
import { batches, openTestStore, savedQuery, type TestStore } from '../support/store.ts';

const SAMPLE = {
  project: { type: 'text', value: 'alpha' },
  days: { type: 'integer', value: 1 },
  now: { type: 'timestamp', value: micros('2026-11-14T12:00:00Z') },
} as const;

const COLUMNS: readonly Column[] = [
  { name: 'id', type: 'text' },
  { name: 'timestamp', type: 'unix_microseconds' },
];

let opened: TestStore;
let outside: string;
beforeAll(async () => {
  opened = await openTestStore();
  await opened.store.append(batches('edge', [edgeRecord({ id: 'mine', at: '2026-11-14T12:00:00Z' })]));
  outside = mkdtempSync(join(tmpdir(), 'dendro-test-'));
  writeFileSync(join(outside, 'secret.csv'), 'a,b\n1,2\n');
  writeFileSync(join(opened.dataDirectory, 'tokens.json'), '{}');
});
afterAll(async () => {
  await opened.close();
  rmSync(outside, { recursive: true, force: true });
});

describe('finding a fault in a saved query', () => {
  const faultOf = (sql: string, columns = COLUMNS) =>
    opened.store.validateQuery({ sql, columns, maxRows: 10 }, SAMPLE);

  test.each([
    ['a plain SELECT', 'select id, timestamp from edge_logs where project = $project'],
    [
      'one that uses every parameter',
      'select id, timestamp from edge_logs where project = $project and timestamp > $now - to_days($days)',
    ],
    ['one without parameters', 'select id, timestamp from edge_logs'],
    ['a WITH', 'with mine as (select * from edge_logs) select id, timestamp from mine'],
    ['one that ends in a semicolon and a comment', 'select id, timestamp from edge_logs; -- all of them'],
    ['one that begins with FROM', 'from edge_logs select id, timestamp'],
    ['a UNION', 'select id, timestamp from edge_logs union all select id, timestamp from auth_logs'],
  ])('there is none in %s', async (_, sql) => {
    expect(await faultOf(sql)).toBeUndefined();
  });

  test.each([
    ['two statements', 'select 1; select 2', /holds 2 statements/],
    ['nothing', '-- only a comment', /no statement/i],
    ['an INSERT', 'insert into logs.schema_version values (1)', /not a SELECT/],
    ['an UPDATE', "update edge_logs set project = 'x'", /not a SELECT/],
    ['a DELETE', 'delete from edge_logs', /not a SELECT/],
    ['a DROP', 'drop table edge_logs', /not a SELECT/],
    ['a transaction', 'commit', /not a SELECT/],
    ['an EXPLAIN', 'explain analyze select 1', /not a SELECT/],
    ['a CALL', 'call pragma_version()', /not a SELECT/],
    [
      'a parameter that is not declared',
      'select id, timestamp from edge_logs where path = $path',
      /uses \$path/,
    ],
    [
      'a column that is not declared',
      'select id, timestamp, url from edge_logs',
      /columns id, timestamp, url/,
    ],
    ['a column that does not exist', 'select id, time from edge_logs', /refused by DuckDB: Binder Error/],
    ['the wrong type', "select id, 'now' as timestamp from edge_logs", /timestamp as VARCHAR/],
    [
      'a function that does not exist',
      'select id, nope(timestamp) as timestamp from edge_logs',
      /Catalog Error/,
    ],
  ])('%s is one, in one sentence', async (_, sql, fault) => {
    const found = await faultOf(sql);
    expect(found).toMatch(fault);
    expect(found).not.toContain('\n');
  });

  test.each([
    ['text', "'x'", true],
    ['text', '1', false],
    ['integer', 'count(*)', true],
    ['integer', '1.5', false],
    ['number', '1.5', true],
    ['number', "'1.5'", false],
    ['json', "'{}'::json", true],
    ['json', "'{}'", false],
    ['unix_microseconds', '$now', true],
    ['utc_datetime', 'current_timestamp', true],
    ['utc_datetime', 'current_date', false],
  ] as const)('a column of the type %s may be %s: %s', async (type, expression, good) => {
    const fault = await faultOf(`select ${expression} as value`, [{ name: 'value', type }]);
    expect(fault === undefined).toBe(good);
  });

  test('nothing is run while looking', async () => {
    // Running this would fail: the text is no number.
    expect(
      await faultOf('select cast(project as integer)::varchar as id, timestamp from edge_logs'),
    ).toBeUndefined();
  });
});

describe('every other door is closed', () => {
  // What a saved query could try, and what a query that somehow got past the check at start could try.
  // OUTSIDE and DATA stand for folders that are made when the tests run.
  const ATTEMPTS: readonly [name: string, sql: string][] = [
    ['reading a file as text', "select content from read_text('OUTSIDE/secret.csv')"],
    ['reading a file as bytes', "select content from read_blob('OUTSIDE/secret.csv')"],
    ['reading a CSV', "select * from read_csv('OUTSIDE/secret.csv')"],
    ['reading a file by its name', "select * from 'OUTSIDE/secret.csv'"],
    ['reading the password file', "select * from read_csv('/etc/passwd')"],
    ['reading out of the intake folder by a detour', "select * from read_text('DATA/intake/../tokens.json')"],
    ['listing a folder', "select * from glob('OUTSIDE/*')"],
    ['reading from the network', "select * from read_csv('http://127.0.0.1:9/x.csv')"],
    ['attaching a file', "attach 'OUTSIDE/other.duckdb' as other"],
    ['attaching the own file once more', "attach 'DATA/dendro.duckdb' as other"],
    ['copying out', "copy edge_logs to 'OUTSIDE/out.csv'"],
    ['exporting', "export database 'OUTSIDE/export'"],
    ['installing an extension', 'install httpfs'],
    ['loading an extension', 'load httpfs'],
    ['loading a library', "load 'OUTSIDE/library.duckdb_extension'"],
    ['opening external access again', 'set global enable_external_access = true'],
    ['allowing another folder', "set global allowed_directories = ['OUTSIDE']"],
    ['unlocking the configuration', 'set global lock_configuration = false'],
    ['more memory', "set memory_limit = '100GB'"],
    ['another time zone', "set TimeZone = 'Asia/Tokyo'"],
    ['a profile in a file', "pragma profiling_output = 'OUTSIDE/profile.json'"],
    ['inserting', 'insert into logs.schema_version values (7)'],
    ['updating', "update logs.edge_sealed_1 set project = 'stolen'"],
    ['deleting', 'delete from logs.edge_sealed_1'],
    ['dropping a table', 'drop table logs.edge_sealed_1'],
    ['making a table', 'create table logs.mine (a integer)'],
    ['detaching the store', 'detach logs'],
  ];
  const place = (sql: string) => sql.replaceAll('OUTSIDE', outside).replaceAll('DATA', opened.dataDirectory);

  test.each(ATTEMPTS)('%s is a fault of a saved query', async (_, sql) => {
    const fault = await opened.store.validateQuery(savedQuery(place(sql)), SAMPLE);
    expect(fault).toBeDefined();
    expect(fault).not.toContain('returns the columns'); // refused for what it does, not for what it answers
  });

  test.each(ATTEMPTS)('%s fails where it is run all the same', async (_, sql) => {
    await expect(opened.store.query(savedQuery(place(sql)), {})).rejects.toThrow(
      /Permission Error|has been locked|read-only|Catalog Error|already attached|only a SELECT/,
    );
  });

  test('after all of that, the records are there and nothing was written elsewhere', async () => {
    expect(await opened.rowsOf('select id, project from logs.edge_logs')).toEqual([['mine', 'alpha']]);
    expect(await opened.rowsOf('select max(version) from logs.schema_version', ['integer'])).toEqual([[3]]);
    expect(readdirSync(outside)).toEqual(['secret.csv']);
    expect(existsSync('out.csv')).toBe(false);
  });

  test('the intake folder is for its owner alone', () => {
    expect(statSync(join(opened.dataDirectory, 'intake')).mode & 0o077).toBe(0);
  });
});

describe('a regular expression', () => {
  test.each(['', 'a', '^(a|b)+$', '\\pL', '(?i)x', '.*'])('%j has no fault', async pattern => {
    expect(await opened.store.validatePattern(pattern)).toBeUndefined();
  });

  test.each(['(', '[', 'a{2,1}', '(?<=a)b', '\\'])('%j has one, told in one line', async pattern => {
    const fault = await opened.store.validatePattern(pattern);
    expect(fault).toBeTruthy();
    expect(fault).not.toContain('\n');
  });
});
