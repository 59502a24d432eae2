import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { FLAGS, type FlagName, variableOf } from '../../src/config.ts';
import { SLEEP, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  findFreePort,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  startServerHere,
} from '../support/process.ts';

/**
 * Each flag of `check` with an invalid and a valid value: the invalid value in the variable stops the command, unless the
 * flag has the valid value. The directories `invalid` and `valid` are created below.
 */
const CHECKED: [FlagName, string, string][] = [
  ['data', 'invalid', 'valid'],
  ['port', 'x', '0'],
  ['internal-port', 'x', '0'],
  ['store', 'clickhouse://', 'duckdb'],
  ['endpoints', 'no-such-folder', 'valid'],
  ['packs', 'unknown', 'explore'],
  ['tokens', 'invalid/tokens.json', 'valid/tokens.json'],
  ['retention-days', 'x', '30'],
  ['max-disk', 'x', '50GB'],
  ['query-timeout', 'x', '30'],
  ['memory-limit', 'x', '300MB'],
  ['cache-bytes', 'x', '0'],
  ['log-format', 'xml', 'text'],
  ['cors-origin', 'nowhere', 'https://dashboard.example.com'],
  ['trusted-proxy', '10.0.0.1', '10.0.0.0/8'],
];

describe('environment variables', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  const checkout = process.cwd();
  beforeAll(() => {
    directory = createTempDirectory();
    process.chdir(directory.path);
    for (const name of ['invalid', 'valid']) mkdirSync(join(directory.path, name));
    writeFileSync(join(directory.path, 'invalid/tokens.json'), 'not a tokens file');
  });
  afterAll(() => {
    process.chdir(checkout);
    directory.remove();
  });

  const run = (args: readonly string[], env: Record<string, string>) => runDendro(args, { env });

  test.each(CHECKED)(
    '--%s is read from its variable, and the flag takes precedence',
    async (flag, invalid, valid) => {
      const env = { [variableOf(flag)]: invalid };
      const byVariable = await run(['check'], env);
      expect(byVariable.code).not.toBe(0);
      if (byVariable.code === 2) expect(onlyLine(byVariable)).toContain(`dendro: ${variableOf(flag)} `);
      expect(await run(['check', `--${flag}`, valid], env)).toMatchObject({ code: 0 });
    },
  );

  test.each([
    ['DENDRO_HOST', '--host'],
    ['DENDRO_INTERNAL_HOST', '--internal-host'],
  ])('%s sets the address of a listener, and the flag takes precedence', async (variable, flag) => {
    const elsewhere = { [variable]: '192.0.2.1', DENDRO_API_KEY: PROCESS_API_KEY };
    const args = ['--data', 'hosts', '--port', '0', '--internal-port', '0'];
    const { code, stderr } = await run(['serve', ...args], elsewhere);
    expect(code).toBe(1);
    expect(stderr).toContain('192.0.2.1');
    const server = await startServerHere([...args, flag, '127.0.0.1'], { env: elsewhere });
    expect((await server.stop()).code).toBe(0);
  });

  test('a server can be configured by variables only', async () => {
    const custom = writeEndpointFolders({ sleep: SLEEP });
    const [port, internalPort] = [await findFreePort(), await findFreePort()];
    const server = await startServerHere(['--port', String(port)], {
      env: {
        DENDRO_API_KEY: PROCESS_API_KEY,
        DENDRO_DATA: 'by-variable',
        DENDRO_PORT: '1',
        DENDRO_INTERNAL_PORT: String(internalPort),
        DENDRO_ENDPOINTS: custom.folder,
        DENDRO_QUERY_TIMEOUT: '1',
      },
    });
    try {
      expect(server.url).toBe(`http://127.0.0.1:${port}`);
      expect(server.internalUrl).toBe(`http://127.0.0.1:${internalPort}`);
      const url = `${server.url}/api/endpoints/query/test.sleep?milliseconds=60000`;
      expect((await fetch(url, { headers: { 'X-API-KEY': PROCESS_API_KEY } })).status).toBe(504);
    } finally {
      await server.stop();
      custom.remove();
    }
  });

  test('an empty variable counts as not set', async () => {
    expect((await run(['check'], { DENDRO_RETENTION_DAYS: '', DENDRO_STORE: '' })).code).toBe(0);
  });

  describe('of dendro query', () => {
    const query = (args: string[], env: Record<string, string>) =>
      run(['query', 'usage.api-counts', '--data', 'queried', ...args], env);
    const INTERVAL = ['--param', 'interval=daily'];

    test('DENDRO_PROJECT sets the parameter project, and the flag takes precedence', async () => {
      expect((await query(INTERVAL, {})).stderr).toContain('project is required');
      expect((await query(INTERVAL, { DENDRO_PROJECT: 'a' })).stdout).toBe('no rows\n');
      expect((await query([...INTERVAL, '--project', 'a'], { DENDRO_PROJECT: '(' })).stdout).toBe(
        'no rows\n',
      );
    });

    test('DENDRO_PARAM sets a parameter, and the flag takes precedence', async () => {
      expect((await query(['--project', 'a'], { DENDRO_PARAM: 'interval=daily' })).stdout).toBe('no rows\n');
      expect((await query(['--project', 'a', ...INTERVAL], { DENDRO_PARAM: 'interval=x' })).stdout).toBe(
        'no rows\n',
      );
    });

    test('DENDRO_JSON, DENDRO_CSV and DENDRO_EXPLAIN select the output', async () => {
      const args = ['--project', 'a', ...INTERVAL];
      expect((await query(args, { DENDRO_JSON: '1' })).stdout).toBe('{"result":[]}\n');
      expect((await query(args, { DENDRO_CSV: 'true' })).stdout).toMatch(/^timestamp,total_rest_requests,/);
      expect((await query(args, { DENDRO_EXPLAIN: 'true' })).stdout).toContain('\nafter window');
    });

    test('DENDRO_URL and DENDRO_TOKEN select a server and a token, and the flags take precedence', async () => {
      const env = { DENDRO_API_KEY: PROCESS_API_KEY };
      const server = await startServerHere(['--data', 'served'], { env });
      try {
        const query = (args: string[], env: Record<string, string>) =>
          run(['query', 'usage.api-counts', ...args], env);
        const args = ['--project', 'a', ...INTERVAL];
        const valid = { DENDRO_URL: server.url, DENDRO_TOKEN: PROCESS_API_KEY };
        expect((await query(args, valid)).stdout).toBe('no rows\n');
        expect((await query(args, { ...valid, DENDRO_TOKEN: 'wrong' })).stderr).toContain('401');
        expect(
          (await query([...args, '--token', PROCESS_API_KEY], { ...valid, DENDRO_TOKEN: 'wrong' })).code,
        ).toBe(0);
        const nowhere = { ...valid, DENDRO_URL: `http://127.0.0.1:${await findFreePort()}` };
        expect((await query(args, nowhere)).code).toBe(1);
        expect((await query([...args, '--url', server.url], nowhere)).code).toBe(0);
        // A flag of the data directory takes precedence over the variable too.
        expect((await query([...args, '--data', 'queried'], nowhere)).code).toBe(0);
      } finally {
        await server.stop();
      }
    });
  });

  test('DENDRO_SOURCE sets the source of dendro ingest, and the flag takes precedence', async () => {
    writeFileSync(join(directory.path, 'empty.ndjson'), '');
    const ingest = (args: string[], source: string) =>
      run(['ingest', 'empty.ndjson', '--data', 'ingested', ...args], { DENDRO_SOURCE: source });
    expect((await ingest([], 'edge')).code).toBe(0);
    expect((await ingest([], 'dance')).code).toBe(2);
    expect((await ingest(['--source', 'edge'], 'dance')).code).toBe(0);
  });

  test('DENDRO_AGAIN loads content once more that dendro ingest loaded before', async () => {
    writeFileSync(join(directory.path, 'one.ndjson'), '{"project":"a","message":"one"}\n');
    const ingest = async (env: Record<string, string>) =>
      (await run(['ingest', 'one.ndjson', '--source', 'edge', '--data', 'again'], env)).stdout;
    expect(await ingest({})).toContain('1 accepted');
    expect(await ingest({})).not.toContain('1 accepted');
    expect(await ingest({ DENDRO_AGAIN: '1' })).toContain('1 accepted');
  });

  test('DENDRO_BEFORE and DENDRO_YES are read by dendro erase', async () => {
    const erase = (env: Record<string, string>) => run(['erase', '--project', 'a', '--data', 'again'], env);
    expect(await erase({ DENDRO_YES: '1', DENDRO_BEFORE: 'x' })).toMatchObject({ code: 2 });
    expect(await erase({ DENDRO_BEFORE: '2020-01-01' })).toMatchObject({ code: 2 });
    expect(await erase({ DENDRO_YES: '1', DENDRO_BEFORE: '2020-01-01' })).toMatchObject({ code: 0 });
  });

  test('a token can be created from variables only, and the flags take precedence', async () => {
    const env = {
      DENDRO_DATA: 'valid',
      DENDRO_NAME: 'acme',
      DENDRO_SCOPE: 'query:logs.all, metrics',
      DENDRO_PROJECT: 'one two',
      DENDRO_EXPIRES: '90d',
      DENDRO_RATE: '2.5',
      DENDRO_TIER: 'PRO',
      DENDRO_REDACT_PII: 'yes',
    };
    expect((await run(['token', 'create'], env)).code).toBe(0);
    const { stdout } = await run(['token', 'create', '--name', 'other', '--rate', '7'], env).then(() =>
      run(['token', 'list'], { DENDRO_DATA: 'valid' }),
    );
    expect(stdout).toMatch(
      /^acme +query:logs.all metrics +one two +2.5\/s, up to PRO, PII redacted +20\S+Z +never$/m,
    );
    expect(stdout).toMatch(/^other .* 7\/s, /m);
  });

  test('DENDRO_TLS_CERT and DENDRO_TLS_KEY must be set together', async () => {
    const alone = await run(['check'], { DENDRO_TLS_CERT: 'cert.pem' });
    expect(alone).toMatchObject({
      code: 2,
      stderr: 'dendro: --tls-cert and --tls-key must be given together; only DENDRO_TLS_CERT is given\n',
    });
    const pair = { DENDRO_TLS_CERT: 'cert.pem', DENDRO_TLS_KEY: 'key.pem' };
    const { code, stderr } = await run(
      ['serve', '--data', 'tls', '--port', '0', '--internal-port', '0'],
      pair,
    );
    expect(code).toBe(1);
    expect(stderr).toContain('cert.pem');
  });

  test('/metrics needs a token unless DENDRO_METRICS_OPEN is set, and DENDRO_ACCESS_LOG logs the request', async () => {
    const statusOf = async (env: Record<string, string>) => {
      const server = await startServerHere(['--data', 'metrics'], {
        env: { DENDRO_API_KEY: PROCESS_API_KEY, ...env },
      });
      const { status } = await fetch(`${server.internalUrl}/metrics`);
      const { stderr } = await server.stop();
      return [status, stderr.includes('"event":"access"')];
    };
    expect(await statusOf({})).toEqual([401, false]);
    expect(await statusOf({ DENDRO_METRICS_OPEN: 'yes', DENDRO_ACCESS_LOG: 'yes' })).toEqual([200, true]);
  });

  test('DENDRO_CLUSTER and DENDRO_APPLY configure dendro schema, and the flag takes precedence', async () => {
    const schema = (args: string[], env: Record<string, string>) =>
      run(['schema', 'clickhouse', ...args], env);
    expect((await schema([], { DENDRO_CLUSTER: 'logs' })).stdout).toContain("on cluster 'logs'");
    expect((await schema(['--cluster', 'mine'], { DENDRO_CLUSTER: 'logs' })).stdout).not.toContain("'logs'");
    expect(await schema([], { DENDRO_APPLY: 'yes' })).toMatchObject({
      code: 2,
      stderr: 'dendro: DENDRO_APPLY needs --store clickhouse://…\n',
    });
  });

  test('DENDRO_PARITY without a ClickHouse store is rejected', async () => {
    const { code, stderr } = await run(['check'], { DENDRO_PARITY: '1', DENDRO_DATA: 'valid' });
    expect(code).toBe(2);
    expect(stderr).toContain('DENDRO_PARITY compares the store of --data with --store clickhouse://…');
  });

  test('DENDRO_FROM and DENDRO_TO set the stores of a migration, and the flags take precedence', async () => {
    const migrate = async (args: string[], env: Record<string, string>) =>
      (await run(['migrate', ...args], env)).stderr;
    expect(await migrate([], { DENDRO_FROM: 'elsewhere' })).toContain('DENDRO_FROM must be duckdb:DIR');
    expect(await migrate([], { DENDRO_FROM: 'duckdb:nowhere' })).toContain('no embedded store in nowhere');
    expect(await migrate(['--from', 'duckdb:other'], { DENDRO_FROM: 'x' })).toContain('store in other');
    expect((await run(['query', 'logs.all', '--project', 'a', '--data', 'moved'], {})).code).toBe(0);
    const from = ['--from', 'duckdb:moved'];
    expect(await migrate(from, { DENDRO_TO: 'duckdb:x' })).toContain(
      'DENDRO_TO must be a ClickHouse URL: clickhouse://…',
    );
    expect(await migrate([...from, '--to', 'clickhouse://'], { DENDRO_TO: 'x' })).toContain(
      'not a valid URL',
    );
  });

  test('every flag is covered by these tests', () => {
    const covered = new Set<string>(CHECKED.map(([flag]) => flag));
    for (const flag of [
      'host',
      'internal-host',
      'project',
      'param',
      'json',
      'csv',
      'again',
      'before',
      'yes',
      'explain',
      'url',
      'token',
      'source',
      'name',
      'scope',
      'expires',
      'rate',
      'tier',
      'redact-pii',
      'accept-loss',
      'metrics-open',
      'access-log',
      'tls-cert',
      'tls-key',
      'cluster',
      'apply',
      'parity',
      'deep',
      'from',
      'to',
      'help',
    ])
      covered.add(flag);
    expect(Object.keys(FLAGS).filter(flag => !covered.has(flag))).toEqual([]);
    expect(commands.flatMap(command => command.flags).filter(flag => !covered.has(flag))).toEqual([]);
  });
});
