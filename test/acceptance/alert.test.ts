// dendro alert, on a running server.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ALERTS,
  type CustomEndpoints,
  testEndpoint,
  writeEndpointFolders,
} from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  onlyLine,
  runDendro,
  type ServerHere,
  startServerHere,
} from '../support/process.ts';
import { TestReceiver } from '../support/receiver.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const directory = createTempDirectory();
const receiversFile = join(directory.path, 'receivers.yaml');
let receiver: TestReceiver;
let server: ServerHere;
let tokens: TestTokens<'admin'>;
let endpoints: CustomEndpoints;
beforeAll(async () => {
  receiver = await TestReceiver.start();
  tokens = await createTokens({ admin: { scopes: ['admin', 'ingest', 'query'] } });
  writeFileSync(receiversFile, "receivers:\n  team: { type: slack, url: '$TEAM_URL' }\n");
  chmodSync(receiversFile, 0o600);
  const quiet = testEndpoint('test.quiet', {
    columns: { project: 'text' },
    sql: "select project from edge_logs where project = 'none'",
    more: { alert: { every: '1d', no_data: { alert: '1h' }, notify: [] } },
  });
  endpoints = writeEndpointFolders({ quiet });
  server = await startServerHere(
    [
      ...['--data', join(directory.path, 'data'), '--tokens', tokens.file, '--packs', 'explore,alerts'],
      ...['--alerts', '--receivers', receiversFile, '--console-url', 'https://logs.example.com/'],
      ...['--endpoints', endpoints.folder],
    ],
    { env: { TEAM_URL: receiver.url } },
  );
});
afterAll(async () => {
  await server?.stop();
  await receiver.stop();
  tokens.remove();
  endpoints.remove();
  directory.remove();
});

const run = (...args: string[]) =>
  runDendro(['alert', ...args], {
    env: { DENDRO_INTERNAL_URL: server.internalUrl, DENDRO_TOKEN: tokens.secrets.admin },
  });

describe('dendro alert', () => {
  test('list prints the alerts of the pack with their states', async () => {
    await expect
      .poll(async () => (await run('list')).stdout)
      .toMatch(/alerts\.project-5xx: ok \(critical; evaluated 2/);
    const { stdout } = await run('list', '--json');
    expect(JSON.parse(stdout)).toHaveLength(6);
  });

  test('test prints the rows and what each receiver would get, and sends nothing', async () => {
    const record = {
      message: 'failed',
      metadata: { project_ref: 'acme', function_id: 'hello', response: { status_code: 500 } },
    };
    const input = Array.from({ length: 6 }, () => JSON.stringify(record)).join('\n');
    await runDendro(['ingest', '--source', 'function_edge', '-', '--url', server.internalUrl], {
      input,
      env: { DENDRO_TOKEN: tokens.secrets.admin },
    });
    await expect
      .poll(async () => (await run('test', 'alerts.function-errors')).stdout)
      .toContain(
        '1 rows\n  {"project":"acme","function_id":"hello","invocations":6,"errors":6,"error_percent":100}\nto team:\n',
      );
    expect(receiver.requests).toEqual([]);
    const { stdout } = await run('test', 'test.quiet');
    expect(stdout).toMatch(/^0 rows; no_data fires\nno receiver would be notified/);
  });

  test('silence prints its end, and list shows it', async () => {
    const { stdout } = await run('silence', 'alerts.no-records', '--for', '2h');
    expect(stdout).toMatch(/^alerts\.no-records is silenced until 20.*Z\n$/);
    expect((await run('list')).stdout).toMatch(/alerts\.no-records: ok \(.*silenced until 20/);
    expect((await run('silence', 'alerts.no-records', '--for', '0s')).stdout).toBe(
      'alerts.no-records is not silenced\n',
    );
  });

  test('send-test says whether the receiver accepted it', async () => {
    expect((await run('send-test', 'team')).stdout).toBe('team accepted a test notification\n');
    expect(receiver.requests.at(-1)?.body.text).toContain('This is a test of the receiver');
    receiver.behaviour = 500;
    const outcome = await run('send-test', 'team');
    receiver.behaviour = 200;
    expect(outcome).toMatchObject({ code: 1, stdout: '' });
    expect(onlyLine(outcome)).toBe('dendro: team did not accept a test notification: status 500');
  });

  test('names the alerts or the receivers if the given one does not exist', async () => {
    const alert = await run('silence', 'a', '--for', '1h');
    expect(alert.code).toBe(2);
    expect(onlyLine(alert)).toContain('there is no alert a; dendro alert list shows them');
    expect(onlyLine(await run('send-test', 'a'))).toContain('there is no receiver a; receivers: team');
  });
});

test('check reports a broken receivers file as serve does, with its line', async () => {
  const args = ['check', '--data', join(directory.path, 'other'), '--alerts', '--receivers', receiversFile];
  const outcome = await runDendro(args);
  expect(outcome.code).toBe(1);
  expect(onlyLine(outcome)).toContain(
    'receivers.yaml: receivers.team.url: the variable TEAM_URL is not set at line 2',
  );
});

test('dendro endpoint test runs the examples of the pack', async () => {
  const { code, stdout } = await runDendro(['endpoint', 'test', '--endpoints', ALERTS]);
  expect(stdout).toContain('5 passed, 0 failed');
  expect(code).toBe(0);
});
