// The overlay for a self-hosted Supabase: starts the program with the overlay's environment, posts records as the stock shipper
// does, and calls the endpoints as Studio does. Docker, Vector and Studio do not run here.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { fieldSourceOf } from '../../src/domain/log-fields.ts';
import { fetchResponse } from '../support/app.ts';
import { createTempDirectory, findFreePort, type ServerProcess, startServer } from '../support/process.ts';
import { readYaml } from './read-yaml.ts';

const PUBLIC_TOKEN = 'stock-public-token-of-the-shipper';
const PRIVATE_TOKEN = 'stock-private-token-of-studio';

const [overlay] = readYaml('supabase/docker-compose.dendro.yml');

const now = Date.now();
/** As Vector writes the time of a container's log line. */
const time = new Date(now).toISOString().replace('Z', '123456Z');
/** As the gateway writes it: whole seconds. */
const seconds = new Date(now - 60_000).toISOString().replace(/\.\d+Z/, 'Z');

/** Records of the shapes that the seven sinks of the stock shipper send, by the source name in their URL. */
const BATCHES: Readonly<Record<string, readonly object[]>> = {
  'cloudflare.logs.prod': [
    gatewayRecord('GET', '/rest/v1/orders?select=id', 200),
    gatewayRecord('POST', '/auth/v1/token?grant_type=password', 400),
    gatewayRecord('GET', '/storage/v1/object/public/a.png', 200),
    {
      project: 'default',
      appname: 'supabase-kong',
      timestamp: seconds,
      severity: 'error',
      event_message: '[error] 12#0: upstream timed out, request: "GET /realtime/v1/websocket HTTP/1.1"',
      metadata: {
        request: {
          host: 'api.example.com',
          method: 'GET',
          path: '/realtime/v1/websocket',
          protocol: 'HTTP/1.1',
        },
        response: { status_code: 200 },
      },
    },
  ],
  'gotrue.logs.prod': [
    {
      project: 'default',
      appname: 'supabase-auth',
      timestamp: time,
      event_message: '{"level":"info","msg":"request completed","path":"/token","status":200}',
      metadata: { level: 'info', msg: 'request completed', path: '/token', status: 200, timestamp: seconds },
    },
  ],
  'realtime.logs.prod': [
    {
      appname: 'realtime-dev.supabase-realtime',
      timestamp: time,
      event_message: 'Janitor finished',
      metadata: { project: 'default', external_id: 'default', level: 'info' },
    },
  ],
  'postgREST.logs.prod': [
    {
      project: 'default',
      appname: 'supabase-rest',
      timestamp: seconds,
      event_message: 'Schema cache loaded',
      metadata: { host: 'default' },
    },
  ],
  'postgres.logs': [
    {
      project: 'default',
      appname: 'supabase-db',
      timestamp: time,
      event_message: 'ERROR:  relation "nothing" does not exist',
      metadata: { host: 'db-default', parsed: { error_severity: 'ERROR', timestamp: time } },
    },
  ],
  'deno-relay-logs': [
    {
      appname: 'supabase-edge-functions',
      timestamp: time,
      event_message: 'a line that a function printed',
      metadata: { project_ref: 'default' },
    },
  ],
  'storage.logs.prod.2': [
    {
      appname: 'supabase-storage',
      timestamp: time,
      event_message: 'GET | 200 | /object/a.png',
      metadata: {
        project: 'default',
        tenantId: 'default',
        level: 'info',
        context: [{ host: 'storage', pid: 1 }],
      },
    },
  ],
};

function gatewayRecord(method: string, path: string, status: number): object {
  return {
    project: 'default',
    appname: 'supabase-kong',
    timestamp: seconds,
    event_message: `172.18.0.1 - - [16/Nov/2026:10:00:00 +0000] "${method} ${path} HTTP/1.1" ${status} 12 "-" "curl"`,
    metadata: {
      request: {
        headers: { cf_connecting_ip: '172.18.0.1', user_agent: 'curl' },
        method,
        path,
        protocol: 'HTTP/1.1',
      },
      response: { status_code: status },
    },
  };
}

let directory: ReturnType<typeof createTempDirectory>;
let server: ServerProcess;

beforeAll(async () => {
  directory = createTempDirectory();
  const tokens: Record<string, string> = {
    LOGFLARE_PUBLIC_ACCESS_TOKEN: PUBLIC_TOKEN,
    LOGFLARE_PRIVATE_ACCESS_TOKEN: PRIVATE_TOKEN,
  };
  const port = String(await findFreePort());
  const env = Object.fromEntries(
    Object.entries<string>(overlay.services.analytics.environment).map(([name, value]) => [
      name,
      value.replace(/\$\{(\w+)\}/, (_, token) => tokens[token] ?? '').replace(/^4000$/, port),
    ]),
  );
  server = await startServer(['--data', directory.path, '--port', port, '--cache-bytes', '0'], { env });
});
afterAll(async () => {
  await server?.stop();
  directory?.remove();
});

/** As Vector's sink `http` with the codec `json` sends a batch. */
const ship = async (source: string, records: readonly object[], token = PUBLIC_TOKEN) => {
  const response = await fetch(`${server.url}/api/logs?source_name=${source}`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify(records),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
};

/** As Studio calls an endpoint. */
const query = (name: string, parameters: string, token = PRIVATE_TOKEN) =>
  fetchResponse(`${server.url}/api/endpoints/query/${name}?project=default&${parameters}`, {
    headers: { 'x-api-key': token, 'content-type': 'application/json; charset=utf-8' },
  });

describe('the stock shipper and Studio, with Dendro in place of Logflare', () => {
  test('one port serves both listeners', () => {
    expect(server.internalUrl).toBe(server.url);
  });

  test.each(Object.entries(BATCHES))('records of %s are accepted', async (source, records) => {
    expect(await ship(source, records)).toMatchObject({
      status: 200,
      body: { accepted: records.length, rejected: 0 },
    });
  });

  test('logs.all returns the gateway records, with and without sql', async () => {
    const paths = async (parameters: string) =>
      (await query('logs.all', parameters)).rows
        .map(({ metadata }) => (metadata as { request: { path: string } }).request.path)
        .sort();
    const expected = [
      '/auth/v1/token?grant_type=password',
      '/realtime/v1/websocket',
      '/rest/v1/orders?select=id',
      '/storage/v1/object/public/a.png',
    ];
    await expect.poll(() => paths('')).toEqual(expected);
    // Clients cannot submit SQL: the parameter is ignored.
    expect(await paths(`sql=${encodeURIComponent('select * from auth_logs')}`)).toEqual(expected);
  });

  test('usage.api-counts counts the gateway records of each service, which have no host', async () => {
    const { rows } = await query('usage.api-counts', 'interval=daily');
    const total = (column: string) => rows.reduce((sum, row) => sum + Number(row[column]), 0);
    // The error line has the host of the gateway, which does not match `default`.
    const services = ['auth', 'realtime', 'rest', 'storage'].map(name => total(`total_${name}_requests`));
    expect(services).toEqual([1, 0, 1, 1]);
  });

  test('functions.invocation-stats counts output lines of the stock shipper without times, and gateway lines with times', async () => {
    const read = async (functionId = '') => {
      const { rows } = await query('functions.invocation-stats', `interval=1day&function_id=${functionId}`);
      return rows.map(({ timestamp: _, ...row }) => row);
    };
    const noTimes = { min_execution_time: null, max_execution_time: null, count: 1, error_count: 0 };
    await expect.poll(() => read()).toMatchObject([noTimes]);
    const invocation = {
      id: 'a1',
      timestamp: time,
      event_message: 'POST | 500 | /functions/v1/hello',
      metadata: {
        project_ref: 'default',
        function_id: 'hello',
        execution_time_ms: 120,
        request: { method: 'POST', pathname: '/functions/v1/hello' },
        response: { status_code: 500 },
      },
    };
    expect((await ship('function_edge', [invocation])).body.accepted).toBe(1);
    await expect
      .poll(() => read('hello'))
      .toMatchObject([{ min_execution_time: 120, max_execution_time: 120, count: 1, error_count: 1 }]);
  });

  test("the shipper's token cannot query, and Studio's token cannot send", async () => {
    expect((await query('logs.all', '', PUBLIC_TOKEN)).status).toBe(403);
    expect((await ship('edge', [gatewayRecord('GET', '/', 200)], PRIVATE_TOKEN)).status).toBe(403);
  });
});

test('nginx logs each request to a function, with its duration, as JSON', async () => {
  expect(ensurePrograms({ nginx: 'nginx-light' }), 'missing programs that this test needs').toEqual([]);
  const port = await findFreePort();
  const log = join(directory.path, 'functions.log');
  const example = readFileSync(
    join(import.meta.dirname, '../../deploy/supabase/nginx-function-log.conf'),
    'utf8',
  );
  const accessLog = /^# (access_log .*;)$/m.exec(example)?.[1]?.replace('/dev/stdout', log);
  const file = join(directory.path, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${directory.path}/nginx.pid; user root; events {}
     http { access_log off; ${example}
       server { listen 127.0.0.1:${port}; ${accessLog} location / { return 204; } } }`,
  );
  const nginx = spawn('nginx', ['-p', directory.path, '-c', file, '-e', 'stderr'], { stdio: 'inherit' });
  try {
    await expect
      .poll(() =>
        fetch(`http://127.0.0.1:${port}/rest/v1/a`).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(204);
    await fetch(`http://127.0.0.1:${port}/functions/v1/hello?name="a"`, { method: 'POST' });
    const readLines = () => readFileSync(log, 'utf8').trim().split('\n').filter(Boolean);
    await expect.poll(readLines).toHaveLength(1);
    expect(JSON.parse(readLines()[0] ?? '')).toEqual({
      log: 'function_edge',
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}[+-]\d\d:\d\d$/),
      method: 'POST',
      path: '/functions/v1/hello',
      status: 204,
      duration_s: expect.any(Number),
    });
  } finally {
    nginx.kill('SIGTERM');
    await once(nginx, 'exit');
  }
});

describe('the overlay files', () => {
  test('analytics has a volume, no Postgres and no variable of Logflare', () => {
    const { analytics } = overlay.services;
    expect(Object.keys(overlay.services)).toEqual(['analytics']);
    expect(analytics.depends_on).toEqual({});
    expect(analytics.volumes).toEqual(['dendro-data:/var/lib/dendro']);
    expect(Object.keys(overlay.volumes)).toEqual(['dendro-data']);
    expect(Object.keys(analytics.environment).every(name => name.startsWith('DENDRO_'))).toBe(true);
  });

  test('the transform of Vector reads a stock transform and posts function_edge records', () => {
    const [{ transforms, sinks }] = readYaml('supabase/vector-functions.yml');
    expect(transforms.function_edge_logs.inputs).toEqual(['project_logs']);
    expect(sinks.dendro_function_edge).toMatchObject({
      inputs: ['function_edge_logs'],
      uri: 'http://analytics:4000/api/logs?source_name=function_edge',
    });
  });

  test('the transform of Vector writes the path to where the search field `path` reads it', () => {
    const [{ transforms }] = readYaml('supabase/vector-functions.yml');
    expect(fieldSourceOf('function_edge', 'path')).toEqual({ metadata: ['request', 'pathname'] });
    expect(transforms.function_edge_logs.source).toMatch(/"request": \{ .*"pathname": function\.pathname \}/);
  });
});
