import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SLEEP, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  findFreePort,
  PROCESS_API_KEY,
  runDendro,
  startServerHere,
} from '../support/process.ts';

// That every flag has a variable, and that the flag takes precedence, is tested in test/config.test.ts.
describe('environment variables', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  const checkout = process.cwd();
  beforeAll(() => {
    directory = createTempDirectory();
    process.chdir(directory.path);
  });
  afterAll(() => {
    process.chdir(checkout);
    directory.remove();
  });

  const run = (args: readonly string[], env: Record<string, string>) => runDendro(args, { env });
  const INTERVAL = ['--param', 'interval=daily'];

  test('an empty variable counts as not set', async () => {
    expect((await run(['check'], { DENDRO_RETENTION_DAYS: '', DENDRO_STORE: '' })).code).toBe(0);
  });

  test('an empty key counts as not set, except for a server', async () => {
    const empty = { DENDRO_API_KEY: '', DENDRO_QUERY_KEY: '' };
    const query = ['query', 'usage.api-counts', '--data', 'without-key', '--project', 'a', ...INTERVAL];
    expect(await run(query, empty)).toMatchObject({ code: 0, stdout: 'no rows\n' });
    const toServer = await run(['query', 'usage.api-counts', '--url', 'http://127.0.0.1:1'], empty);
    expect(toServer).toMatchObject({ code: 2, stderr: expect.stringContaining('--url needs a token') });
  });

  test('a server warns of unknown variables', async () => {
    const env = { DENDRO_API_KEY: PROCESS_API_KEY, DENDRO_RETENTION: '30', DENDRO_LOG_FORMAT: 'text' };
    const server = await startServerHere(['--data', 'warned'], { env });
    expect((await server.stop()).stderr).toContain(
      'unknown_variables: unknown environment variables, which have no effect: DENDRO_RETENTION\n',
    );
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
        DENDRO_METRICS_OPEN: 'yes',
        DENDRO_ACCESS_LOG: 'yes',
      },
    });
    expect(server.url).toBe(`http://127.0.0.1:${port}`);
    expect(server.internalUrl).toBe(`http://127.0.0.1:${internalPort}`);
    const url = `${server.url}/api/endpoints/query/test.sleep?milliseconds=60000`;
    expect((await fetch(url, { headers: { 'X-API-KEY': PROCESS_API_KEY } })).status).toBe(504);
    expect((await fetch(`${server.internalUrl}/metrics`)).status).toBe(200);
    expect((await server.stop()).stderr).toContain('"event":"access"');
    custom.remove();
  });

  test('DENDRO_URL and DENDRO_TOKEN select a server and a token, and the flags take precedence', async () => {
    const env = { DENDRO_API_KEY: PROCESS_API_KEY };
    const server = await startServerHere(['--data', 'served'], { env });
    try {
      const query = (more: string[], variables: Record<string, string>) =>
        run(['query', 'usage.api-counts', '--project', 'a', ...INTERVAL, ...more], variables);
      const valid = { DENDRO_URL: server.url, DENDRO_TOKEN: PROCESS_API_KEY };
      const wrong = { ...valid, DENDRO_TOKEN: 'wrong' };
      expect((await query([], valid)).stdout).toBe('no rows\n');
      expect((await query([], wrong)).stderr).toContain('401');
      expect((await query(['--token', PROCESS_API_KEY], wrong)).code).toBe(0);
      const nowhere = { ...valid, DENDRO_URL: `http://127.0.0.1:${await findFreePort()}` };
      expect((await query([], nowhere)).code).toBe(1);
      expect((await query(['--url', server.url], nowhere)).code).toBe(0);
      // A flag of the data directory takes precedence over the variable too.
      expect((await query(['--data', 'queried'], nowhere)).code).toBe(0);
    } finally {
      await server.stop();
    }
  });
});
