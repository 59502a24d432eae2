// The log of the real program: every 5xx, slow queries, refused tokens and the access log, without secrets and parameter values.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FAULT, SLEEP, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  PROCESS_API_KEY,
  type ServerHere,
  startServerHere,
} from '../support/process.ts';

const env = { DENDRO_API_KEY: PROCESS_API_KEY };
const folders = writeEndpointFolders({ sleep: SLEEP, fault: FAULT });
const directory = createTempDirectory();
const VALUE = '1234567';

afterAll(() => {
  folders.remove();
  directory.remove();
});

describe('the log of a server', () => {
  let server: ServerHere;
  let lines: Record<string, unknown>[];
  let requestIds: (string | null)[];
  beforeAll(async () => {
    const flags = ['--query-timeout', '6', '--access-log'];
    server = await startServerHere(['--data', directory.path, '--endpoints', folders.folder, ...flags], {
      env,
    });
    const ask = (path: string, key = PROCESS_API_KEY) =>
      fetch(`${server.url}/api/endpoints/query/${path}`, { headers: { 'X-API-KEY': key } });
    const slow = await ask('test.sleep?milliseconds=1200');
    const timedOut = await ask('test.sleep?milliseconds=60000');
    const fault = await ask(`test.fault?number=${VALUE}x`);
    await ask(`logs.all?project=${VALUE}`, 'dnd_a-wrong-token');
    expect([slow.status, timedOut.status, fault.status]).toEqual([200, 504, 500]);
    requestIds = [slow, timedOut, fault].map(({ headers }) => headers.get('dendro-request-id'));
    const { stderr, stdout } = await server.stop();
    expect(stdout).toBe(`public: listening on ${server.url}\ninternal: listening on ${server.internalUrl}\n`);
    lines = stderr
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
  });
  const linesOf = (event: string) => lines.filter(line => line['event'] === event);

  test('is JSON if standard error is not a terminal, with time, level, event and message in each line', () => {
    for (const { time, level, event, message } of lines) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(['info', 'warn', 'error']).toContain(level);
      expect([typeof event, typeof message]).toEqual(['string', 'string']);
    }
    const events = lines.map(({ event }) => event);
    expect([events[0], ...events.slice(-2)]).toEqual(['started', 'stopping', 'stopped']);
  });

  test('has a slow query with its endpoint, timings, rows and request id', () => {
    const [line, ...others] = linesOf('slow_query').filter(({ endpoint }) => endpoint === 'test.sleep');
    expect(others).toEqual([]);
    expect(line).toMatchObject({ endpoint: 'test.sleep', rows: 1, request_id: requestIds[0] });
    expect(line?.['executed_ms']).toBeGreaterThan(1000);
    expect(line).toHaveProperty('queued_ms');
  });

  test('has every 5xx with its endpoint and request id', () => {
    expect(linesOf('request_unavailable')).toMatchObject([
      { level: 'warn', endpoint: 'test.sleep', status: 504, request_id: requestIds[1] },
    ]);
    expect(linesOf('request_failed')).toMatchObject([
      { level: 'error', endpoint: 'test.fault', request_id: requestIds[2] },
    ]);
  });

  test('has a refused token with its address and the reason', () => {
    expect(linesOf('token_refused')).toMatchObject([{ reason: 'unknown_token', address: '127.0.0.1' }]);
  });

  test('has one line for each request with --access-log', () => {
    const served = linesOf('access').map(({ method, endpoint, route, status, outcome, address }) => [
      ...[method, endpoint ?? route, status, outcome, address],
    ]);
    expect(served).toEqual([
      ['GET', 'test.sleep', 200, 'bypass', '127.0.0.1'],
      ['GET', 'test.sleep', 504, 'none', '127.0.0.1'],
      ['GET', 'test.fault', 500, 'none', '127.0.0.1'],
      ['GET', '/api/endpoints/query/*', 401, 'none', '127.0.0.1'],
    ]);
  });

  test('contains no token, and a parameter value only in the message of the engine', () => {
    const rest = lines.filter(({ event }) => event !== 'request_failed').map(line => JSON.stringify(line));
    expect(rest.join()).not.toMatch(new RegExp(`${VALUE}|60000|wrong-token|${PROCESS_API_KEY}`));
  });
});

test('--log-format text writes lines for people', async () => {
  const server = await startServerHere(['--data', directory.path, '--log-format', 'text'], { env });
  expect((await server.stop()).stderr).toMatch(
    /^\S+Z info {2}started: dendro \S+ started: store duckdb, data directory \S+, public http\S+, internal http\S+\n\S+Z info {2}stopping: .*\n\S+Z info {2}stopped: stopped\n$/,
  );
});
