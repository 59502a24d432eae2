// Texts that must never be executed, in the parameter `sql`.
import { createRequire } from 'node:module';

/** Functions that read files, settings, other databases or other servers, or that change something: of DuckDB and of ClickHouse. */
const FUNCTIONS =
  `read_text read_blob read_csv read_csv_auto read_json read_parquet parquet_scan sniff_csv glob getenv current_setting
  duckdb_settings duckdb_tables duckdb_secrets duckdb_functions duckdb_columns pragma_version pragma_table_info query query_table
  sql_auto_complete json_execute_serialized_sql json_serialize_sql nextval currval setseed write_log current_query pg_read_file
  pg_sleep sleep sleepEachRow file url s3 hdfs remote remoteSecure cluster mysql postgresql mongodb redis sqlite odbc jdbc executable
  dictGet dictGetString joinGet getSetting getServerSetting hostName currentDatabase currentUser serverUUID filesystemAvailable
  addressToLine initializeAggregation runningAccumulate neighbor throwIf input merge numbers generateRandom view values`.split(
    /\s+/,
  );

const STATEMENTS = [
  "copy edge_logs to '/tmp/dendro-attack'",
  "attach '/etc/passwd' as x",
  'install httpfs',
  'load httpfs',
  'pragma database_list',
  'set enable_external_access = true',
  'reset lock_configuration',
  'call pragma_version()',
  'create table x as select 1',
  'create or replace view edge_logs as select 1',
  'insert into edge_logs values (1)',
  "update edge_logs set project = 'default'",
  'delete from edge_logs',
  'drop table edge_logs',
  'alter table edge_logs drop column id',
  'truncate edge_logs',
  'system shutdown',
  'kill query where 1',
  'grant all on *.* to default',
  'explain select id from edge_logs',
  'describe edge_logs',
  'show tables',
  'summarize edge_logs',
  'prepare x as select 1',
  'execute x',
  "export database '/tmp/dendro-attack'",
  'begin transaction',
  'checkpoint',
  'vacuum',
  'use system',
  'from edge_logs',
  'table edge_logs',
  'values (1)',
  "select id into outfile '/tmp/dendro-attack' from edge_logs",
  'select id from edge_logs format Null',
  'select id from edge_logs settings readonly = 0',
];

const SOURCES = [
  'information_schema.tables',
  'system.tables',
  'main.edge_logs',
  'memory.main.edge_logs',
  'pg_catalog.pg_tables',
  'sqlite_master',
  'duckdb_secrets()',
  "'/etc/passwd'",
  "'s3://bucket/x.parquet'",
  '"/etc/passwd"',
  '`/etc/passwd`',
  'edge_logs_local',
  'rest_logs',
  'field_status',
  'edge_logs, auth_logs',
  'edge_logs join auth_logs on true',
  'edge_logs natural join auth_logs',
  'edge_logs asof join auth_logs on true',
  'edge_logs cross join lateral (select 1)',
  'edge_logs positional join auth_logs',
  '(select id from edge_logs)',
  '(values (1)) as t(id)',
  'edge_logs pivot (count(*) for id in (1))',
  'edge_logs tablesample 1%',
  'edge_logs at (version => 1)',
  'numbers(10)',
  'range(10)',
  'generate_series(1, 1000000000)',
  'unnest([1, 2])',
];

/** Expressions in the place of a value. */
const EXPRESSIONS = [
  '(select project from edge_logs limit 1)',
  'exists (select 1)',
  'id in (select id from edge_logs)',
  'id = any (select 1)',
  'array(select 1)',
  '$project',
  '$1',
  '?',
  ':project',
  '@@version',
  '@x',
  '{project:String}',
  '{{logs}}',
  "x'41'",
  "e'\\x41'",
  "b'a'",
  "n'a'",
  '$$a$$',
  '$tag$a$tag$',
  'id collate nocase',
  "id at time zone 'UTC'",
  'id over ()',
  'row_number() over ()',
  'list_transform([1], x -> x)',
  'lambda x: x',
  '[1, 2][1]',
  "{'a': 1}",
  'map {1: 2}',
  'columns(*)',
  '*',
  'edge_logs',
  'project',
  'field_method',
  'url',
  '_planned_when_run',
  'rowid',
  'current_user',
  'current_date',
  'interval 1 hour',
  "date '2026-01-01'",
  'id::json',
  'cast(id as struct(a int))',
  'try(1/0)',
  '1/0',
  '1 << 62',
  '9'.repeat(400),
  `1e${'9'.repeat(10)}`,
  "'a' 'b'",
  'id = 1 = 1',
  'a.b.c.d.e.f.g.h.i.j.k.l',
  'grouping(id)',
  'default',
  'id is json',
  'position(id in id)',
  'extract(hour from timestamp)',
  'count(*) filter (where true)',
  'sum(1) within group (order by id)',
  'array_agg(id order by id)',
  'string_agg(id)',
];

/** Where an expression can be. */
const PLACES = [
  'select EXPRESSION from edge_logs',
  'select id from edge_logs where EXPRESSION',
  "select id from edge_logs where id = 'a' and EXPRESSION = id",
  'select id from edge_logs order by EXPRESSION',
  'select count(*) as c from edge_logs group by EXPRESSION',
  'select count(*) as c from edge_logs having EXPRESSION > 1',
  'select id from edge_logs limit EXPRESSION',
  'select id from edge_logs cross join unnest(EXPRESSION) as m',
  'select count(case when EXPRESSION then 1 end) as c from edge_logs',
  'select id from edge_logs left join unnest(metadata) as m on EXPRESSION',
];

const NESTED = [
  '(',
  '((',
  'not ',
  '- ',
  'case when ',
  'lower(',
  'coalesce(',
  '[',
  '(select ',
  'id in (',
  '/*',
  "'",
  '"',
  '`',
  '{',
];

/** Statements in literals and in comments: only text. */
export function listHiddenStatements(): string[] {
  return STATEMENTS.map(each => each.replaceAll("'", '')).flatMap(statement => [
    `select id from edge_logs where id = '\\'; ${statement} --'`,
    `select id from edge_logs where id = ''';${statement}--'`,
    `select id from edge_logs where id = "'; ${statement} --"`,
    `select id from edge_logs where id = 'a' -- ; ${statement}`,
    `select id from edge_logs where id = 'a' /* ; ${statement} */`,
  ]);
}

/** All are refused. */
export async function listHostileQueries(): Promise<string[]> {
  const names = new Set([...FUNCTIONS, ...(await listEngineFunctions())]);
  const queries = [
    ...STATEMENTS,
    ...STATEMENTS.flatMap(statement => [
      `select id from edge_logs; ${statement}`,
      `${statement}; select id from edge_logs`,
      `select id from edge_logs /* ' */; ${statement} -- '`,
      `select id from edge_logs where id = 'a''; ${statement} --`,
      `select id from edge_logs where id = "a'; ${statement} --"; ${statement}`,
      `with x as (${statement}) select id from edge_logs`,
    ]),
    ...SOURCES.flatMap(source => [
      `select id from ${source}`,
      `select count(*) as count from ${source} where true`,
      `select id from edge_logs union all select id from ${source}`,
    ]),
    ...PLACES.flatMap(place => EXPRESSIONS.map(expression => place.replace('EXPRESSION', () => expression))),
    ...[...names].flatMap(name => [
      `select ${name}('/etc/passwd') as x from edge_logs`,
      `select id from edge_logs where ${name}(id) is not null and id = "a"`,
    ]),
    ...FUNCTIONS.map(name => `select id from ${name}('/etc/passwd')`),
    ...NESTED.flatMap(part =>
      [10, 1000].map(
        count => `select id from edge_logs where ${part.repeat(Math.min(count, 4000 / part.length))}`,
      ),
    ),
    `select id from edge_logs where ${'('.repeat(2000)}true${')'.repeat(2000)} = (select 1)`,
    `select ${'not '.repeat(1500)}true from edge_logs`,
    `select id from edge_logs where ${Array(600).fill("id = 'a'").join(' or ')} or id = (select 1)`,
    `select ${Array(1000).fill('id').join(', ')} from edge_logs`,
    'select id from edge_logs where id = \uFFFD',
    "select id from edge_logs where id = '\0'",
    'select\u00a0id\u200bfrom edge_logs where \u037e',
    'ｓｅｌｅｃｔ id from edge_logs',
  ];
  return [...new Set(queries)];
}

/** Names of functions and operators of DuckDB. */
async function listEngineFunctions(): Promise<string[]> {
  const { DuckDBInstance } = createRequire(import.meta.url)(
    '@duckdb/node-api',
  ) as typeof import('@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const result = await connection.runAndReadAll(
    'select distinct function_name from duckdb_functions() order by 1',
  );
  connection.closeSync();
  instance.closeSync();
  const known =
    /^(lower|upper|count|count_star|sum|avg|mean|min|max|starts_with|coalesce|ifnull|if|timestamp|unnest|nullif)$/;
  return result
    .getRows()
    .map(([name]) => String(name))
    .filter(name => /^\w+$/.test(name) && !known.test(name));
}
