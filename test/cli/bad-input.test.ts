import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { createTempDirectory, onlyLine, PROCESS_API_KEY, runDendro } from '../support/process.ts';

// Wrong calls of every command. They are refused before anything is opened, with one line, and the exit code is 2.

/** The arguments, words of the message, and environment variables. */
type WrongCall = [args: string, words: string, variables?: Record<string, string>];

const URL_AND_TOKEN = '--url http://127.0.0.1:1 --token t';
const KEY = { DENDRO_API_KEY: PROCESS_API_KEY };

const WRONG: Record<string, WrongCall[]> = {
  dendro: [
    ['dance', 'unknown command dance; commands: serve, ingest, query,'],
    ['qeury logs.all', 'unknown command qeury; did you mean query?'],
    ['--port 80 serve', 'the command comes before its flags'],
    ['help dance', 'unknown command dance'],
    ['help serve query', 'unexpected argument: query'],
    ['version 2', 'unexpected argument: 2'],
  ],
  serve: [
    ['fast', 'unexpected argument: fast'],
    ['--dance', "Unknown option '--dance'; allowed flags: --data, --host,"],
    ['--prot 80', "Unknown option '--prot'; did you mean --port?"],
    ['-p 80', "Unknown option '-p'"],
    ['--packs search', '--packs search is unknown; allowed: explore, alerts, none'],
    ['--packs none --packs explore', '--packs none and explore exclude each other; give one of them'],
    ['', 'DENDRO_PACKS none and explore exclude each other', { DENDRO_PACKS: 'explore,none' }],
    ['--receivers r.yaml', '--receivers needs --alerts: without it, no alert is evaluated'],
    [
      '--alerts --console-url nothing',
      '--console-url nothing is not a URL without a user name and a query, such as https://logs.example.com',
    ],
    ['--alerts --console-url http://u:p@x', 'is not a URL without a user name'],
    ['--alerts --console-url http://x/y?z', 'is not a URL without a user name'],
    ['--port', "'--port <value>' argument missing"],
    ['--data --port', "'--data' argument is ambiguous"],
    ['--port 1 --port 2', '--port is given 2 times'],
    ['--port=', '--port is required'],
    ['--port -1', '--port -1 is not a whole number from 0 to 65535'],
    [
      '--endpoints none',
      '--endpoints none does not exist; name the directory that contains the endpoint folders',
    ],
    ['--port=-1', '--port -1 is not a whole number from 0 to 65535'],
    ['--store sqlite', '--store sqlite is unknown; allowed: duckdb, clickhouse://…'],
    ['--store clickhouse://', '--store is not a valid URL'],
    ['--retention-days 0', '--retention-days 0 is not a whole number from 1'],
    ['--memory-limit 500', '--memory-limit 500 is not a size such as 500MB'],
    ["--memory-limit=1GB';drop", '--memory-limit'],
    ['--metrics-open=no', "'--metrics-open' does not take an argument"],
    ['--cors-origin *', '--cors-origin * is not a web origin'],
    ['--trusted-proxy 10.0.0.1', '--trusted-proxy 10.0.0.1 is not a range'],
    ['--tls-cert a.pem', '--tls-cert and --tls-key must be given together; only --tls-cert is given'],
    ['--tls-key a.pem', 'only --tls-key is given'],
    ['--internal-tls-key a.pem', '--internal-tls-cert and --internal-tls-key must be given together'],
    [
      '--port 80 --internal-port 80 --internal-host 127.0.0.2',
      '--internal-host 127.0.0.2 differs from --host 127.0.0.1, but both use port 80',
    ],
    ['', 'DENDRO_PORT x is not a whole number', { DENDRO_PORT: 'x' }],
    ['', 'DENDRO_METRICS_OPEN maybe is unknown; allowed: 1, true,', { DENDRO_METRICS_OPEN: 'maybe' }],
  ],
  ingest: [
    ['--source edge', 'name at least one file'],
    ['a.ndjson --source dance', '--source dance is unknown; allowed: edge,'],
    ['a.ndjson --agian', 'did you mean --again?'],
    [
      'a.ndjson --source edge --url localhost --token t',
      '--url localhost is not a URL; allowed: http://HOST',
    ],
    ['a.ndjson --source edge --url http://127.0.0.1:1', '--url needs a token: set --token or DENDRO_TOKEN'],
    [
      'a.ndjson --source edge --url http://127.0.0.1:1 --token dnd_…',
      '--token contains a character that an HTTP header cannot carry',
    ],
    [
      'a.ndjson --source edge --url http://user:pw@127.0.0.1:1 --token t',
      '--url contains a user name or a password; remove them, and set --token instead',
    ],
    [`a.ndjson --source edge --data d ${URL_AND_TOKEN}`, '--url and --data exclude each other'],
    [
      'a.ndjson --source edge',
      'DENDRO_URL is the URL of the public listener, but this command uses the internal listener: set --url or DENDRO_INTERNAL_URL',
      { DENDRO_URL: 'http://127.0.0.1:1' },
    ],
  ],
  query: [
    ['logs.all --project p --explain --csv', '--explain and --csv exclude each other; allowed: --json'],
    ['', 'name exactly one endpoint'],
    ['logs.all usage.api-counts', 'name exactly one endpoint'],
    ['logs.all --project p --param format=csv', 'format is not a parameter here; use --json or --csv'],
    ['logs.all --param project', '--param project is not NAME=VALUE'],
    ['logs.all --project a --project b', '--project is given 2 times'],
    ['logs.all --project p --json --csv', '--json and --csv exclude each other'],
    ['logs.all --project p', 'DENDRO_JSON and DENDRO_CSV exclude', { DENDRO_JSON: '1', DENDRO_CSV: '1' }],
    [`logs.all --project p --endpoints d ${URL_AND_TOKEN}`, '--url and --endpoints exclude each other'],
    ['logs.all --project p --token t', '--token needs --url'],
    ['logs.all --project p', 'DENDRO_URL x is not a URL', { ...KEY, DENDRO_URL: 'x' }],
    [
      'logs.all --project p --url http://127.0.0.1:1',
      'DENDRO_API_KEY contains a character that an HTTP header cannot carry',
      { DENDRO_API_KEY: 'two words' },
    ],
    [
      'logs.all --project p',
      'DENDRO_INTERNAL_URL is the URL of the internal listener, but this command uses the public listener',
      { DENDRO_INTERNAL_URL: 'http://127.0.0.1:1' },
    ],
  ],
  types: [
    ['fast', 'unexpected argument: fast'],
    ['', '--url is required: the URL of the public listener'],
  ],
  mcp: [
    ['fast', 'unexpected argument: fast'],
    ['', '--url is required: the URL of the public listener'],
  ],
  token: [
    ['', 'an action is required; actions: create, list, revoke'],
    ['rotate', 'unknown action rotate; actions: create, list, revoke'],
    ['craete', 'unknown action craete; did you mean create?'],
    ['create --scope query', '--name is required'],
    ['create --name n', '--scope is required; allowed: query, query:<endpoint name>'],
    ['create --name n --scope everything', '--scope everything is unknown; allowed: query'],
    [
      'create --name n --scope query:logs.al',
      '--scope query:logs.al: there is no endpoint logs.al (--endpoints adds custom ones); did you mean logs.all?',
    ],
    ['create --name n --scope query --rate fast', '--rate fast is not'],
    ['create --name n --scope query', 'DENDRO_RATE 0 is not', { DENDRO_RATE: '0' }],
    ['create --name n --scope query --tier GOLD', '--tier GOLD is unknown; allowed: FREE, PRO'],
    ['create --name n --scope query --expires 90', '--expires 90 is not a duration'],
    ['create --name n --scope query --project=', '--project is empty'],
    ['create --name n --scope query --scope admin --project a', '--scope admin concerns all projects'],
    ['create --name n --scope query --expires 0d', '--expires 0d'],
    ['create extra --name n --scope query', 'unexpected argument: extra'],
    [
      'create --name n --scope query --json',
      '--json is a flag of dendro token list, not of dendro token create',
    ],
    ['list a', 'unexpected argument: a'],
    ['list --name n', '--name is a flag of dendro token create, not of dendro token list'],
    ['revoke', 'name exactly one token'],
    ['revoke a b', 'name exactly one token'],
  ],
  backup: [
    ['', 'name exactly one directory for the copy'],
    [`copy --data d ${URL_AND_TOKEN}`, '--url and --data exclude each other'],
    ['copy --token t', '--token'],
  ],
  erase: [
    ['fast', 'unexpected argument: fast'],
    ['--yes', '--project is required, once'],
    ['--project a --project b --yes', '--project is required, once'],
    ['--project p --before yesterday --yes', '--before yesterday is not a time'],
    ['--project p', '--yes is required, because there is no terminal'],
  ],
  alert: [
    ['', 'an action is required; actions: list, test, silence, send-test'],
    ['lst', 'unknown action lst; did you mean list?'],
    ['test', 'usage: dendro alert test NAME'],
    ['silence a', '--for is required: the length of the silence'],
    ['silence a --for long', '--for long is not a duration such as 30m, 2h or 1d'],
    ['list', '--url is required: the URL of the internal listener of a running server'],
  ],
  demo: [
    ['fast', 'unexpected argument: fast'],
    ['--port x', '--port x is not'],
    ['--data d', "Unknown option '--data'"],
  ],
  endpoint: [
    ['', 'an action is required; actions: new, test'],
    ['nw', 'unknown action nw; did you mean new?'],
    ['new', 'give exactly one name, such as: dendro endpoint new errors.by-path'],
    ['new a b --endpoints d', 'give exactly one name'],
    ['new a', '--endpoints is required'],
    ['new Errors --endpoints d', 'Errors is not a name of an endpoint: use dotted lower-case words'],
    ['test', '--endpoints is required'],
  ],
  check: [
    ['fast', 'unexpected argument: fast'],
    ['--port x', '--port x is not'],
    ['--project p', '--project needs --parity'],
    ['--parity', '--parity compares the store of --data with --store clickhouse://…'],
    ['--parity --store clickhouse://h', 'needs at least one --project'],
    [
      '--parity --deep --store clickhouse://h --project p',
      '--parity and --deep cannot be combined; run the command once for each',
    ],
  ],
  migrate: [
    ['fast', 'unexpected argument: fast'],
    ['', '--from is required'],
    ['--from d', '--from must be duckdb:DIR'],
    ['--from duckdb:stored', '--to is required'],
    ['--from duckdb:stored --to duckdb:d', '--to must be a ClickHouse URL'],
  ],
  schema: [
    ['', 'expected: dendro schema clickhouse'],
    ['clickhouse --cluster a,b', '--cluster a,b is not a valid cluster name'],
    ['clickhouse --apply', '--apply needs --store clickhouse://…'],
  ],
};

describe('a wrong call', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  const checkout = process.cwd();
  beforeAll(() => {
    directory = createTempDirectory();
    mkdirSync(join(directory.path, 'stored'));
    writeFileSync(join(directory.path, 'stored/dendro.duckdb'), '');
    process.chdir(directory.path);
  });
  afterAll(() => {
    process.chdir(checkout);
    directory.remove();
  });

  const calls = Object.entries(WRONG).flatMap(([command, cases]) =>
    cases.map(([args, words, variables = {}]) => {
      const all = [command === 'dendro' ? '' : command, ...args.split(' ')].filter(Boolean);
      const assignments = Object.entries(variables).map(([name, value]) => `${name}=${value} `);
      return [`${assignments.join('')}dendro ${all.join(' ')}`, words, all, variables] as const;
    }),
  );

  test.each(calls)('%s: one line with "%s"', async (_, words, all, variables) => {
    const outcome = await runDendro(all, { env: variables });
    expect(outcome).toMatchObject({ code: 2, stdout: '' });
    expect(onlyLine(outcome)).toContain(words);
    expect(readdirSync('.')).toEqual(['stored']);
  });

  test('is tested for every command', () => {
    expect(commands.map(({ name }) => name).filter(name => WRONG[name] === undefined)).toEqual([]);
  });
});
