import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FORBIDDEN_FUNCTIONS, SYSTEM_VIEW } from '../../src/store/duckdb/allowed-sql.ts';
import { DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { inspectStore } from '../../src/store/open-store.ts';
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

test('the functions with side effects and the system views are those of DuckDB', async () => {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const readNames = async (sql: string) =>
    (await connection.runAndReadAll(`select distinct ${sql} order by all`)).getRows().map(([name]) => name);
  const marked = await readNames('function_name from duckdb_functions() where has_side_effects');
  const views = await readNames("view_name from duckdb_views() where schema_name <> 'information_schema'");
  instance.closeSync();
  const harmless = ['error', 'gen_random_uuid', 'random', 'sleep_ms', 'uuid', 'uuidv4', 'uuidv7'];
  expect([...FORBIDDEN_FUNCTIONS, ...harmless].sort()).toEqual(marked);
  expect(views).toContain('duckdb_tables');
  expect(views.filter(name => !SYSTEM_VIEW.test(String(name)))).toEqual([]);
});

describe('validation of a saved query', () => {
  const findProblem = (sql: string, columns = COLUMNS) =>
    opened.store.validateQuery({ sql, columns, maxRows: 10 }, { sample: SAMPLE });

  test.each([
    [
      'a query with nested and repeated WITH',
      `with mine as (select * from edge_logs), Same as (with mine as (select * from MINE) select * from mine)
       select id, timestamp from SAME where project in (select project from mine)`,
    ],
    [
      'a query that uses every parameter',
      'select id, timestamp from edge_logs where project = $project and timestamp > $now - to_days($days)',
    ],
    ['a query that ends in a semicolon and a comment', 'select id, timestamp from edge_logs; -- all of them'],
    ['a query that starts with FROM', 'from edge_logs select id, timestamp'],
    [
      'a UNION of two kinds',
      'select id, timestamp from edge_logs union all select id, timestamp from auth_logs',
    ],
    [
      'a query with the allowed table functions',
      `with recursive days as (select $now as day union all select day - to_days(1) from days where day > $now)
       select e.id, day as timestamp from days, EDGE_LOGS as e, json_each(e.metadata), json_tree(e.metadata),
         range(3) as r(a), generate_series(1, 3) as s(b), unnest([1, 2]) as u(c)`,
    ],
    [
      'a query with a random value',
      'select uuid()::varchar as id, timestamp from edge_logs order by random()',
    ],
  ])('%s is valid', async (_, sql) => {
    expect(await findProblem(sql)).toBeUndefined();
  });

  test.each([
    [
      'a WITH that hides a log table',
      'with edge_logs as (select * from auth_logs) select id, timestamp from edge_logs',
      /edge_logs, which is not allowed: a table or a file has this name; rename it/,
    ],
    ['an INSERT', 'insert into edge_part_1.records (id) values (1)', /not a SELECT/],
    ['a transaction', 'commit', /not a SELECT/],
    ['an EXPLAIN', 'explain analyze select 1', /not a SELECT/],
    ['a CALL', 'call pragma_version()', /not a SELECT/],
    [
      'a column that does not exist',
      'select id, time from edge_logs',
      /DuckDB rejects it at line 1: Binder Error/,
    ],
    [
      'a function that does not exist',
      'select id, nope(timestamp) as timestamp from edge_logs',
      /Catalog Error/,
    ],
  ])('%s is rejected in one line', async (_, sql, problem) => {
    const found = await findProblem(sql);
    expect(found).toMatch(problem);
    expect(found).not.toContain('\n');
  });

  test.each([
    [
      "select id, timestamp from edge_logs, enable_logging(storage := 'file')",
      'table function enable_logging',
    ],
    ['select id, timestamp from edge_logs, (from ENABLE_PROFILING())', 'table function enable_profiling'],
    [
      'select id, (select count(*) from checkpoint()) as timestamp from edge_logs',
      'table function checkpoint',
    ],
    ['with a as (from duckdb_settings()) select id, timestamp from edge_logs, a', 'function duckdb_settings'],
    ['select id, timestamp from edge_logs where exists (from glob($project))', 'table function glob'],
    ["select id, timestamp from query('select * from edge_logs')", 'table function query'],
    ["select id, timestamp from query_table('edge_logs')", 'table function query_table'],
    ["from json_execute_serialized_sql('{}')", 'table function json_execute_serialized_sql'],
    ['from range(3), duckdb_logs_parsed($project)', 'table function duckdb_logs_parsed'],
    ['from range((select count(*) from truncate_duckdb_logs()))', 'table function truncate_duckdb_logs'],
    ['select id, timestamp from edge_logs where setseed(0.5) is null', 'function setseed'],
    ["select NEXTVAL('s')::varchar as id, timestamp from edge_logs", 'function nextval'],
    ['select id, timestamp from edge_logs where project.write_log() is null', 'function write_log'],
    ['select id, timestamp from range(3), range(write_log($project)::integer)', 'function write_log'],
    ['select id, timestamp from edge_part_1.records', 'table edge_part_1.records'],
    ['select id, timestamp from mem.edge_1', 'table mem.edge_1'],
    [
      'select table_name as id, $now as timestamp from information_schema.tables',
      'information_schema.tables',
    ],
    [
      'select table_name as id, $now as timestamp from (with duckdb_tables as (select 1) select 1), duckdb_tables',
      'common table expression duckdb_tables',
    ],
    [
      `with duckdb_tables as (select table_name as id, $now as timestamp from duckdb_tables)
       select id, timestamp from duckdb_tables`,
      'common table expression duckdb_tables',
    ],
    [
      `with recursive duckdb_tables as
         (select table_name from duckdb_tables union all select 'x' from duckdb_tables where false)
       select table_name as id, $now as timestamp from duckdb_tables`,
      'common table expression duckdb_tables',
    ],
    [
      `with "information_schema.tables" as (select 1)
       select table_name as id, $now as timestamp from information_schema.tables`,
      'common table expression information_schema.tables',
    ],
    ['select id, timestamp from edge_logs where $project in (from (show tables))', 'not a SELECT'],
    ['select column_name as id, $now as timestamp from (summarize edge_logs)', 'not a SELECT'],
  ])('%s is rejected, and the reason names %s', async (sql, name) => {
    const found = await findProblem(sql);
    expect(found).toContain(name);
    expect(found).toMatch(/allowed/);
    expect(found).not.toContain('\n');
  });

  test.each([
    ["project like '%a%'", undefined],
    ["project like '%a%b'", undefined],
    ["project not like 'a_b%' and project ilike '%a%' and project glob '*a*'", undefined],
    ["project like '100\\%\\%\\%%' escape '\\'", undefined],
    ["project similar to '(?s)(a.*)*b.*c.*d'", undefined],
    ['project ~ $project and project !~ $project and not regexp_full_match(project, $project)', undefined],
    ["project /* ü */ similar to '%a%b%'", 'similar to with more than 2 wildcards'],
    ['project not similar to $project', 'similar to with a pattern that is not a text in quotes'],
    ["regexp_matches(project, $project, 's')", undefined],
    ['project like $project', 'like with a pattern that is not a text in quotes'],
    ["project not like project || '%'", 'not like with a pattern that is not a text in quotes'],
    ["project like '%a%b%'", 'like with more than 2 wildcards'],
    ["project like '%_%b'", 'like with more than 2 wildcards'],
    ["list_filter([project], lambda x: x ILIKE '%a%b%c%') = []", 'ilike with more than 2 wildcards'],
    ["project ilike '%a%b'", 'ilike with two wildcards of which the second is not at the end'],
    ["project glob '*a*b'", 'glob with two wildcards of which the second is not at the end'],
    ["project glob '*[a-c]*'", 'glob with more than 2 wildcards'],
    ["project like '%a%b' escape '$'", 'like with two wildcards of which the second is not at the end'],
    ["not_ilike_escape(project, '%a%b%', '$')", 'not ilike with more than 2 wildcards'],
    ["project like 'a' escape $project", 'like with a pattern that is not a text in quotes'],
  ])('the condition %s is rejected: %s', async (condition, reason) => {
    const found = await findProblem(`select id, timestamp from edge_logs where ${condition}`);
    expect(found).toBe(
      reason &&
        `uses ${reason}, which is not allowed: DuckDB can take hours for one text; use contains(), starts_with(), ends_with() or regexp_matches()`,
    );
  });

  test.each(['system.main.regexp_matches', 'system.regexp_matches'])(
    'the function %s is rejected, because of its schema',
    async name => {
      expect(await findProblem(`select id, timestamp from edge_logs where ${name}('a', project)`)).toBe(
        `calls the function ${name}, which is not allowed: write its name without a catalog and a schema`,
      );
    },
  );

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
  ] as const)('for a column of the type %s, %s is valid: %s', async (type, expression, isValid) => {
    const problem = await findProblem(`select ${expression} as value`, [{ name: 'value', type }]);
    expect(problem === undefined).toBe(isValid);
  });

  test('validation does not run the query', async () => {
    // Running this would fail: the text is no number.
    expect(
      await findProblem('select cast(project as integer)::varchar as id, timestamp from edge_logs'),
    ).toBeUndefined();
  });
});

describe('regular expressions', () => {
  /** Whether a text of 5 KB matches. Fails if DuckDB does not end, or if it cannot be interrupted. */
  const matches = async (condition: string, project: string) => {
    const sql = `select ${condition} as value from (select repeat('abcdefgh', 600 + range::integer) as text from range(1)) where $project is not null`;
    const query = { sql, columns: [{ name: 'value', type: 'json' as const }], maxRows: 10 };
    const { rows } = await opened.store.query(query, { project: { type: 'text', value: project } });
    return rows[0]?.[0];
  };

  test.each([
    ['regexp_matches(text, $project)', '(?s)a.*b.*c.*d.*e.*f.*Q'],
    ['regexp_matches(text, $project)', '(?s)^.*a.*b.*c.*d.*e.*Q$'],
    ['regexp_matches(text, $project)', 'a(?s:.*)b(?s:.*)c(?s:.*)d(?s:.*)e(?s:.*)Q'],
    ['regexp_matches(text, $project)', '(?-i)(?U-m)(?Us-i)a.*b.*c.*d.*e.*f.*Q'],
    ['text.regexp_matches($project)', '(?s)a.*?b.*?c.*?d.*?e.*?f.*?Q'],
    ["regexp_matches(text, $project, 's')", 'a.*b.*c.*d.*e.*f.*Q'],
    ["regexp_matches(text, '(?s)' || $project)", 'a.*b.*c.*d.*e.*f.*Q'],
    ['text similar to $project', '(?s)a.*b.*c.*d.*e.*f.*Q'],
  ])('%s ends for %s', async (condition, project) => {
    expect(await matches(condition, project)).toBe('false');
  });

  test('the option l searches for the text itself', async () => {
    const rows = await opened.rowsOf(
      "select regexp_matches('a+b', 'a+b', 'l')::varchar as id, now() as timestamp",
      ['text', 'unix_microseconds'],
    );
    expect(rows[0]?.[0]).toBe('true');
  });

  test('a random expression matches the same texts as without what DuckDB replaces', async () => {
    const texts = [
      '',
      'a',
      'b',
      'ab',
      'ba',
      'abc',
      'xabc',
      'abcx',
      'a\nb',
      'a\nbc',
      '\n',
      'a%b',
      'a_b',
      'A',
      'é',
      'cab',
    ];
    const values = { texts: { type: 'texts' as const, value: texts } };
    const parts =
      'a b c é . .* .*? .+ (?s) (?-s) (?i) (?U) (?s-i) (?m) (?: (?s: (?i: (?-s: ( ) ) | ^ $ \\A \\z \\Q \\E \\[ [ab] [^a] [\\s\\S] * + ? {0} {2} \\n % _ \\. \\b (?P<s>';
    const pattern = fc
      .array(fc.constantFrom(...parts.split(' ')), { minLength: 1, maxLength: 8 })
      .map(each => each.join(''))
      .map(each => each + ')'.repeat(Math.max(0, each.split('(').length - each.split(')').length)));
    await fc.assert(
      fc.asyncProperty(pattern, async project => {
        if ((await opened.store.validatePattern(project)) !== undefined) return;
        const select = (regex: string) =>
          `select count(*)::varchar as id, now() as timestamp from unnest($texts) as t(text) where regexp_matches(text, ${regex})`;
        const run = (regex: string) =>
          opened.rowsOf(select(regex), ['text', 'unix_microseconds'], {
            ...values,
            project: { type: 'text', value: project },
          });
        // A pattern that depends on the row is not replaced.
        const [replaced, plain] = await Promise.all([run('$project'), run('$project || left(text, 0)')]);
        expect([project, replaced[0]?.[0]]).toEqual([project, plain[0]?.[0]]);
      }),
      { numRuns: 500 },
    );
  });
});

describe('access to files, settings and other tables', () => {
  // Attempts by a saved query, and by a query that passed validation by mistake. OUTSIDE and DATA are replaced by directories.
  const ATTEMPTS: readonly [name: string, sql: string][] = [
    ['reading a file as text', "select content from read_text('OUTSIDE/secret.csv')"],
    ['reading a file as bytes', "select content from read_blob('OUTSIDE/secret.csv')"],
    ['reading a CSV', "select * from read_csv('OUTSIDE/secret.csv')"],
    ['reading a file by its name', "select * from 'OUTSIDE/secret.csv'"],
    ['reading the password file', "select * from read_csv('/etc/passwd')"],
    [
      'reading a file beside the staging directory with ..',
      "select * from read_text('DATA/staging/../tokens.json')",
    ],
    ['listing a directory', "select * from glob('OUTSIDE/*')"],
    ['reading from the network', "select * from read_csv('http://127.0.0.1:9/x.csv')"],
    ['attaching a file', "attach 'OUTSIDE/other.duckdb' as other"],
    ['attaching a part again', "attach 'DATA/parts/edge-000001.duckdb' as other"],
    ['copying to a file', "copy (select 1) to 'OUTSIDE/out.csv'"],
    ['copying to a part', "copy (select 1) to 'DATA/parts/edge-000001.duckdb'"],
    ['exporting the database', "export database 'OUTSIDE/export'"],
    ['installing an extension', 'install httpfs'],
    ['loading an extension', 'load httpfs'],
    ['loading a library', "load 'OUTSIDE/library.duckdb_extension'"],
    ['enabling external access', 'set global enable_external_access = true'],
    ['allowing another directory', "set global allowed_directories = ['OUTSIDE']"],
    ['unlocking the configuration', 'set global lock_configuration = false'],
    ['raising the memory limit', "set memory_limit = '100GB'"],
    ['changing the time zone', "set TimeZone = 'Asia/Tokyo'"],
    ['writing a profile to a file', "pragma profiling_output = 'OUTSIDE/profile.json'"],
    ['inserting a row', "insert into edge_part_1.records (id) values ('stolen')"],
    ['updating a part', "update edge_part_1.records set project = 'stolen'"],
    ['deleting from a memtable', 'delete from mem.edge_1'],
    ['dropping a part', 'drop table edge_part_1.records'],
    ['creating a table', 'create table mem.mine (a integer)'],
    ['detaching a part', 'detach edge_part_1'],
  ];
  const fillIn = (sql: string) => sql.replaceAll('OUTSIDE', outside).replaceAll('DATA', opened.dataDirectory);

  test.each(ATTEMPTS)('%s fails the validation, and when it is run without validation', async (_, sql) => {
    const query = savedQuery(fillIn(sql));
    const problem = await opened.store.validateQuery(query, { sample: SAMPLE });
    expect(problem).toBeDefined();
    expect(problem).not.toContain('returns the columns'); // rejected for what it does, not for its columns
    await expect(opened.store.query(query, {})).rejects.toThrow(
      /Permission Error|has been locked|read-only|Catalog Error|already attached|only a SELECT/,
    );
  });

  test('after all attempts, the records are unchanged and no file was written', async () => {
    expect(await opened.rowsOf('select id, project from edge_logs')).toEqual([['mine', 'alpha']]);
    const { damages } = await inspectStore('duckdb', { dataDirectory: opened.dataDirectory });
    expect(damages).toEqual([]);
    expect(readdirSync(join(opened.dataDirectory, 'parts'))).toEqual(['edge-000001.duckdb']);
    expect(readdirSync(outside)).toEqual(['secret.csv']);
    expect(existsSync('out.csv')).toBe(false);
  });

  test('only the owner can access the staging directory', () => {
    expect(statSync(join(opened.dataDirectory, 'staging')).mode & 0o077).toBe(0);
  });
});
