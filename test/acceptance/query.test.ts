import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CustomEndpoints, FAULT, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerHere,
  startServerHere,
} from '../support/process.ts';

const QUERY_KEY = 'a-query-key-of-the-acceptance-tests';
const env = { DENDRO_API_KEY: PROCESS_API_KEY, DENDRO_QUERY_KEY: QUERY_KEY };
const NOW = Date.now();
const at = (minutesAgo: number) => new Date(NOW - minutesAgo * 60_000).toISOString();

/** Starts like a formula, and contains ESC, a C1 control character and a character that changes the direction of text. */
const UNSAFE = '=a\u001b[31mb\u009b2Jc\u202ed';

const LINES = [
  { id: 'unsafe', timestamp: at(3), project: 'unsafe', message: UNSAFE },
  {
    id: 'new',
    timestamp: at(1),
    project: 'alpha',
    message: 'two\nlines, and "quotes"',
    metadata: { request: { path: '/rest/v1/a' } },
  },
  {
    id: 'old',
    timestamp: at(2),
    project: 'alpha',
    message: 'plain',
    metadata: { request: { path: '/auth/v1/b' } },
  },
];

/** JSON.stringify cannot write this number. */
const LARGE_NUMBER = `{"project":"numbers","message":"m","metadata":{"id":12345678901234567890}}`;

// The same queries on the store of a data directory and on a running server return the same rows.
describe.each(['--data', '--url'] as const)('dendro query %s', source => {
  let directory: ReturnType<typeof createTempDirectory>;
  let custom: CustomEndpoints;
  let server: ServerHere | undefined;
  let target: string[];
  beforeAll(async () => {
    directory = createTempDirectory();
    custom = writeEndpointFolders({
      fault: { ...FAULT, sql: 'select cast($number as bigint) as answer' },
    });
    const input = [...LINES.map(line => JSON.stringify(line)), LARGE_NUMBER].join('\n');
    const loaded = await runDendro(['ingest', '-', '--source', 'edge', '--data', directory.path], { input });
    expect(loaded).toMatchObject({ code: 0, stdout: expect.stringContaining('4 accepted') });
    const endpoints = ['--endpoints', custom.folder];
    if (source === '--url') server = await startServerHere(['--data', directory.path, ...endpoints], { env });
    target = server === undefined ? ['--data', directory.path, ...endpoints] : ['--url', server.url];
  });
  afterAll(async () => {
    await server?.stop();
    directory.remove();
    custom.remove();
  });

  const query = (...args: string[]) => runDendro(['query', ...args, ...target], { env });
  const micros = (time: string) => `${Date.parse(time)}000`;

  test('prints a table with one line per row and the number of rows', async () => {
    const { code, stdout, stderr } = await query('logs.all', '--project', 'alpha');
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines).toHaveLength(6);
    expect(lines[0]).toMatch(/^id +timestamp +event_message +metadata$/);
    expect(lines[1]).toMatch(/^-+( +-+){3}$/);
    const time = at(1).replace(/(\.\d{3})Z$/, '$1000Z');
    expect(lines[2]).toMatch(new RegExp(`^new +${time} +two lines, and "quotes" +\\{"request":`));
    expect(lines[3]).toMatch(/^old +20\d\d-\d\d-\d\dT[\d:.]+Z +plain +\{/);
    expect(lines[4]).toBe('2 rows');
  });

  test('a table has the exact digits of large numbers', async () => {
    const { stdout } = await query('logs.all', '--project', 'numbers');
    expect(stdout).toContain('{"id":12345678901234567890}');
    const counted = await query('test.fault', '--param', 'number=9007199254740993');
    expect(counted.stdout.split('\n')).toEqual([
      '          answer',
      '----------------',
      '9007199254740993',
      '1 row',
      '',
    ]);
  });

  test('runs an endpoint of the explore pack', async () => {
    const { stdout } = await query('logs.search', '--project', 'alpha', '--param', 'query=plain', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ result: [{ id: 'old', kind: 'edge' }] });
  });

  test('--explain prints how many records remain after each condition, and a summary', async () => {
    const { code, stdout, stderr } = await query(
      'logs.all',
      '--project',
      'alpha',
      '--param',
      `iso_timestamp_start=${at(0)}`,
      '--explain',
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'parameter project              alpha',
      'parameter project_tier         FREE',
      expect.stringContaining(`parameter iso_timestamp_start  ${at(0).slice(0, 19)}`),
      'parameter iso_timestamp_end    -',
      expect.stringMatching(/^window start {19}\d{4}-/),
      'window end                     -',
      expect.stringMatching(/^newest record {18}\d{4}-/),
      expect.stringMatching(/^oldest record {18}\d{4}-/),
      'after project                  2 records',
      'after retention                2 records',
      'after range                    0 records',
      expect.stringMatching(
        /^0 rows: 2 records of this project within the FREE tier's 1 day match, all older than the start of the requested range, /,
      ),
      '',
    ]);
  });

  test('--explain without explain SQL, and with a bad parameter, fails with one line', async () => {
    const unexplained = await query('test.fault', '--param', 'number=1', '--explain');
    expect(unexplained.code).toBe(1);
    expect(onlyLine(unexplained)).toContain('the endpoint test.fault has no explanation');
    const missing = await query('logs.all', '--explain');
    expect(missing.code).toBe(2);
    expect(onlyLine(missing)).toContain('project is required');
    expect(missing.stdout).toBe('');
  });

  test('a table escapes control characters; JSON and CSV in a pipe are exact', async () => {
    const table = await query('logs.all', '--project', 'unsafe');
    expect(table.stdout.split('\n')[2]).toContain('=a\\u001b[31mb\\u009b2Jc\\u202ed');
    const json = await query('logs.all', '--project', 'unsafe', '--json');
    expect(JSON.parse(json.stdout).result[0].event_message).toBe(UNSAFE);
    expect(json.stdout).toContain('b\u009b2Jc\u202ed');
    const csv = await query('logs.all', '--project', 'unsafe', '--csv');
    expect(csv.stdout).toContain(`,'${UNSAFE},`);
  });

  test('prints on standard error why rows are missing', async () => {
    const { stderr } = await query(
      'logs.all',
      '--project',
      'alpha',
      '--param',
      'iso_timestamp_start=2020-01-01',
    );
    expect(stderr).toBe('rows are missing: retention\n');
  });

  test('--json prints the response of the API', async () => {
    const { code, stdout } = await query('logs.all', '--project', 'alpha', '--json');
    expect(code).toBe(0);
    const { result } = JSON.parse(stdout);
    expect(Object.keys(result[0])).toEqual(['id', 'timestamp', 'event_message', 'metadata']);
    expect(result[0]).toEqual({
      id: 'new',
      timestamp: Number(micros(at(1))),
      event_message: 'two\nlines, and "quotes"',
      metadata: { request: { path: '/rest/v1/a' } },
    });
  });

  test('--csv prints the response of format=csv', async () => {
    const { code, stdout } = await query('logs.all', '--project', 'alpha', '--csv');
    expect(code).toBe(0);
    expect(stdout).toBe(
      'id,timestamp,event_message,metadata\r\n' +
        `new,${micros(at(1))},"two\nlines, and ""quotes""","{""request"":{""path"":""/rest/v1/a""}}"\r\n` +
        `old,${micros(at(2))},plain,"{""request"":{""path"":""/auth/v1/b""}}"\r\n`,
    );
  });

  test.each([
    ['a missing parameter', ['logs.all'], 'project is required'],
    [
      'a parameter given twice',
      ['logs.all', '--project', 'a', '--param', 'project=b'],
      'project is given 2 times',
    ],
    [
      'an unknown parameter',
      ['usage.api-counts', '--project', 'a', '--param', 'intervall=daily'],
      'intervall is no parameter; did you mean interval?',
    ],
    [
      'an unknown parameter next to all that are required',
      [
        'logs.all',
        '--project',
        'a',
        '--param',
        'sql=x',
        '--param',
        'teir=PRO',
        '--param',
        'project-tier=PRO',
      ],
      'endpoint logs.all does not know this parameter or its value: sql, teir, project-tier; did you mean project_tier',
    ],
    ['an unknown endpoint', ['logs.al', '--project', 'a'], 'no endpoint logs.al; did you mean logs.all?'],
  ])('%s: one line, exit 2', async (_, args, words) => {
    const outcome = await query(...args);
    expect(outcome.code).toBe(2);
    expect(outcome.stdout).toBe('');
    expect(onlyLine(outcome)).toContain(words);
  });

  test('a query that fails prints no rows, exit 1', async () => {
    const { code, stdout } = await query('test.fault', '--param', 'number=seven');
    expect(code).toBe(1);
    expect(stdout).toBe('');
  });
});

describe('dendro query', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let server: ServerHere;
  beforeAll(async () => {
    directory = createTempDirectory();
    server = await startServerHere(['--data', directory.path, '--studio'], { env });
  });
  afterAll(async () => {
    await server.stop();
    directory.remove();
  });

  const query = (...args: string[]) => runDendro(['query', 'logs.all', '--project', 'a', ...args]);

  test('--data of a running server: one line that names its PID and --url, exit 1', async () => {
    const outcome = await query('--data', directory.path);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toMatch(new RegExp(`in use by .*PID ${server.pid}\\b.*--url`));
  });

  test('sql of logs.all runs on a server with --studio', async () => {
    const sql = 'sql=select id, timestamp, event_message from edge_logs';
    const outcome = await query('--param', sql, '--url', server.url, '--token', QUERY_KEY);
    expect(outcome).toMatchObject({ code: 0, stdout: 'no rows\n', stderr: '' });
  });

  test('a line end after the token, and a slash at the end of --url are ignored', async () => {
    expect((await query('--url', `${server.url}/`, '--token', `${PROCESS_API_KEY}\n`)).stdout).toBe(
      'no rows\n',
    );
  });
});
