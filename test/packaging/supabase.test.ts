// The overlay for a self-hosted Supabase: starts the program with the overlay's environment, posts records as the stock shipper
// does, and calls the endpoints as Studio does. Docker, Vector and Studio do not run here.
import { spawn, spawnSync } from 'node:child_process';
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
      value
        .replace(/\$\{(\w+)(?::-([^}]*))?\}/, (_, variable, fallback) => tokens[variable] ?? fallback)
        .replace(/^4000$/, port),
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

  test('logs.all returns the gateway records', async () => {
    const paths = async () =>
      (await query('logs.all', '')).rows
        .map(({ metadata }) => (metadata as { request: { path: string } }).request.path)
        .sort();
    const expected = [
      '/auth/v1/token?grant_type=password',
      '/realtime/v1/websocket',
      '/rest/v1/orders?select=id',
      '/storage/v1/object/public/a.png',
    ];
    await expect.poll(paths).toEqual(expected);
  });

  test('logs.all with the SQL of a page of Studio returns the records of that page', async () => {
    const sql =
      'select id, auth_logs.timestamp, event_message from auth_logs order by timestamp desc limit 100';
    const find = async () => (await query('logs.all', `sql=${encodeURIComponent(sql)}`)).rows;
    await expect.poll(find).toMatchObject([{ event_message: expect.stringContaining('request completed') }]);
  });

  test('a search for a path finds its requests, whatever their query string', async () => {
    const { rows } = await query('logs.search', 'kind=edge&query=path:/rest/v1/orders');
    expect(rows).toMatchObject([{ metadata: { request: { path: '/rest/v1/orders?select=id' } } }]);
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

describe('the log of the gateway with durations', () => {
  const [{ transforms, sinks }] = readYaml('supabase/vector-gateway.yml');
  const [kong] = readYaml('supabase/kong-log.yml');
  const [envoy] = readYaml('supabase/envoy-log.yml');
  const variables: Record<string, string> = kong.services.kong.environment;
  const envoyFields = Object.keys(envoy.access_log[0].typed_config.log_format.json_format);

  /** Runs nginx, on which Kong is built, with Kong's variables as directives, and returns the lines that it logs. */
  const logWithNginx = async (send: (url: string) => Promise<unknown>): Promise<string[]> => {
    expect(ensurePrograms({ nginx: 'nginx-light' }), 'missing programs that this test needs').toEqual([]);
    const port = await findFreePort();
    const url = `http://127.0.0.1:${port}`;
    const log = join(directory.path, 'gateway.log');
    const unescaped = (name: string) => variables[name]?.replaceAll('$$', '$');
    const file = join(directory.path, 'nginx.conf');
    writeFileSync(
      file,
      `daemon off; pid ${directory.path}/nginx.pid; user root; events {}
       http { log_format ${unescaped('KONG_NGINX_HTTP_LOG_FORMAT')};
         server { listen 127.0.0.1:${port};
           location = /started { access_log off; return 204; }
           location / {
             access_log ${unescaped('KONG_PROXY_ACCESS_LOG')?.replace('/dev/stdout', log)}; return 204; } } }`,
    );
    const nginx = spawn('nginx', ['-p', directory.path, '-c', file, '-e', 'stderr'], { stdio: 'inherit' });
    try {
      const status = () =>
        fetch(`${url}/started`).then(
          response => response.status,
          () => 0,
        );
      await expect.poll(status).toBe(204);
      await send(url);
      const lines = () => readFileSync(log, 'utf8').trim().split('\n').filter(Boolean);
      await expect.poll(lines).toHaveLength(2);
      return lines();
    } finally {
      nginx.kill('SIGTERM');
      await once(nginx, 'exit');
    }
  };

  /** What the transform `gateway_logs` makes of a line. Vector does not run here. */
  const toEdgeRecord = (line: string) => {
    const request = JSON.parse(line);
    const { method, path, protocol, remote_addr: cf_connecting_ip, referer, user_agent, status } = request;
    return {
      id: request.id,
      project: 'default',
      timestamp: time,
      event_message: [method, status, path].join(' | '),
      metadata: {
        request: { method, path, protocol, headers: { cf_connecting_ip, referer, user_agent } },
        response: { status_code: Number(status), origin_time: request.duration_s * 1000 },
      },
    };
  };

  test('is one JSON line for each request, which becomes an edge record with its duration', async () => {
    const lines = await logWithNginx(async url => {
      await fetch(`${url}/rest/v1/todos?name="a"`, { headers: { 'user-agent': 'a "browser"' } });
      await fetch(`${url}/rest/v1/todos`, { method: 'POST' });
    });
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      log: 'gateway',
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      remote_addr: '127.0.0.1',
      method: 'GET',
      path: '/rest/v1/todos?name=%22a%22',
      protocol: 'HTTP/1.1',
      status: '204',
      duration_s: expect.any(Number),
      referer: '',
      user_agent: 'a "browser"',
    });
    expect((await ship('edge', lines.map(toEdgeRecord))).body).toMatchObject({ accepted: 2, rejected: 0 });
    const search = (expression: string) =>
      query('logs.search', `kind=edge&query=${encodeURIComponent(expression)}`);
    const expression = 'path:/rest/v1/todos status:204 response.origin_time:>=0';
    await expect.poll(async () => (await search(expression)).rows).toHaveLength(2);
  });

  test('has, from Kong and from Envoy, every field that the transform of Vector reads', () => {
    const format = variables['KONG_NGINX_HTTP_LOG_FORMAT'] ?? '';
    const kongFields = [...format.matchAll(/"(\w+)":/g)].map(([, name]) => name);
    const read = new Set(
      [...transforms.gateway_logs.source.matchAll(/request\.(\w+)/g)].map(([, name]) => name),
    );
    const withoutUnit = (names: Iterable<unknown>) =>
      [...new Set([...names].map(name => String(name).replace(/^duration_.*/, 'duration')))].sort();
    expect(withoutUnit(kongFields)).toEqual(withoutUnit(read));
    expect(withoutUnit(envoyFields)).toEqual(withoutUnit(read));
    expect(kongFields).toContain('duration_s');
    expect(envoyFields).toContain('duration_ms');
  });

  test('is read from a stock transform of Vector and posted as edge and function_edge records', () => {
    expect(transforms.gateway_logs.inputs).toEqual(['project_logs']);
    expect(transforms.function_edge_logs.inputs).toEqual(['gateway_logs']);
    for (const [kind, inputs] of Object.entries({
      edge: 'gateway_logs',
      function_edge: 'function_edge_logs',
    }))
      expect(sinks[`dendro_${kind}`]).toMatchObject({
        inputs: [inputs],
        uri: `http://analytics:4000/api/logs?source_name=${kind}`,
      });
  });

  test('has the path of a function where the search field `path` reads it', () => {
    expect(fieldSourceOf('function_edge', 'path')).toEqual({ metadata: ['request', 'pathname'] });
    expect(transforms.function_edge_logs.source).toContain('.metadata.request.pathname = function.pathname');
  });
});

describe('the overlay', () => {
  const { analytics } = overlay.services;

  test('has a volume, no Postgres and no variable of Logflare', () => {
    expect(Object.keys(overlay.services)).toEqual(['analytics']);
    expect(analytics.depends_on).toEqual({});
    expect(analytics.volumes).toEqual(['dendro-data:/var/lib/dendro']);
    expect(Object.keys(overlay.volumes)).toEqual(['dendro-data']);
    expect(Object.keys(analytics.environment).every(name => name.startsWith('DENDRO_'))).toBe(true);
  });

  test('publishes the console for this machine only, and its health check is the one of the server', async () => {
    expect(analytics.ports).toEqual([
      expect.stringMatching(/^127\.0\.0\.1:\$\{DENDRO_CONSOLE_PORT:-4100\}:4000$/),
    ]);
    const page = await fetch(`${server.url}/`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<title>')]);
    const [command, ...args] = analytics.healthcheck.test.slice(1);
    const health = args.map((arg: string) => arg.replace('http://127.0.0.1:4000', server.url));
    expect(spawnSync(command, health).status).toBe(0);
  });

  test('limits the memory of the container to more than that of the store', () => {
    const megabytes = (text: string) => {
      const [, digits, unit] = /(\d+)(m|g)b?\}?$/i.exec(text) ?? [];
      return Number(digits) * (unit?.toLowerCase() === 'g' ? 1000 : 1);
    };
    const store = megabytes(analytics.environment.DENDRO_MEMORY_LIMIT);
    expect(megabytes(analytics.mem_limit)).toBeGreaterThan(3 * store);
  });
});
