import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { FAULT, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerHere,
  startServerHere,
} from '../support/process.ts';

const SECRET = /^dnd_[A-Za-z0-9_-]{43}\n$/;

describe('dendro token next to a running server', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let server: ServerHere;
  beforeAll(async () => {
    directory = createTempDirectory();
    server = await startServerHere(['--data', directory.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  });
  afterAll(async () => {
    await server.stop();
    directory.remove();
  });

  const token = (...args: string[]) => runDendro(['token', ...args, '--data', directory.path]);
  const create = async (name: string, ...args: string[]) => {
    const { code, stdout, stderr } = await token('create', '--name', name, ...args);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `stored in ${join(directory.path, 'tokens.json')}\n`,
    });
    expect(stdout).toMatch(SECRET);
    return stdout.trimEnd();
  };
  const request = (secret: string, path = '/api/endpoints/query/logs.all?project=alpha') =>
    fetchResponse(`${server.url}${path}`, { headers: { 'X-API-KEY': secret } });
  /** Repeats a request until it has the status. The contract says 1 s; a busy machine may need longer. */
  const untilStatus = async (secret: string, expected: number, path?: string) => {
    for (let attempt = 0; attempt < 100; attempt++) {
      if ((await request(secret, path)).status === expected) return;
      await sleep(100);
    }
    throw new Error(`status ${expected} was not returned within 10 s`);
  };

  test('a new token becomes valid and a revoked one invalid without a restart', async () => {
    const secret = await create('dashboard', '--scope', 'query');
    await untilStatus(secret, 200);
    const revoked = await token('revoke', 'dashboard');
    expect(revoked).toEqual({ code: 0, stdout: 'revoked dashboard\n', stderr: '' });
    await untilStatus(secret, 401);
    expect((await request(PROCESS_API_KEY)).status).toBe(200);
  });

  test('scopes, projects and rate are applied as given by the flags', async () => {
    const limited = await create(
      'limited',
      '--scope',
      'query:logs.all',
      '--scope',
      'ingest',
      '--project',
      'alpha',
    );
    await untilStatus(limited, 200);
    expect(
      (await request(limited, '/api/endpoints/query/usage.api-counts?project=alpha&interval=daily')).status,
    ).toBe(403);
    expect((await request(limited, '/api/endpoints/query/logs.all?project=beta')).status).toBe(403);
    const slow = await create('slow', '--scope', 'query', '--rate', '0.01');
    await untilStatus(slow, 429);
  });

  test('a name that is already used is rejected, and the existing token stays valid', async () => {
    const secret = await create('taken', '--scope', 'query');
    const again = await token('create', '--name', 'taken', '--scope', 'query');
    expect(again.code).toBe(1);
    expect(again.stdout).toBe('');
    expect(onlyLine(again)).toContain('there is already a token taken');
    await untilStatus(secret, 200);
  });

  test('list shows scopes and limits of a token, but neither the secret nor its hash', async () => {
    const secret = await create(
      ...(['listed', '--scope', 'query:logs.all', '--scope', 'metrics'] as const),
      ...[
        '--project',
        'alpha',
        '--project',
        'beta',
        '--expires',
        '90d',
        '--rate',
        '2.5',
        '--tier',
        'PRO',
        '--redact-pii',
      ],
    );
    const { code, stdout, stderr } = await token('list');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const line = stdout.split('\n').find(text => text.includes('listed')) ?? '';
    for (const part of ['query:logs.all metrics', 'alpha beta', '2.5/s', 'up to PRO', 'redacted', 'never'])
      expect(line).toContain(part);
    expect(line).toMatch(/20\d\d-\d\d-\d\dT/);
    expect(stdout).not.toContain(secret.slice(4, 20));
    expect(stdout).not.toMatch(/[0-9a-f]{64}/);
  });

  test('list shows when a token was last used', async () => {
    const secret = await create('used', '--scope', 'query');
    await untilStatus(secret, 200);
    await server.stop(); // the server writes last uses when it stops
    server = await startServerHere(['--data', directory.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    const line = (await token('list')).stdout.split('\n').find(text => text.startsWith('used')) ?? '';
    expect(line).toMatch(/ never +20\d\d-\d\d-\d\dT[\d:.]+Z/); // expires never, last used at
  });

  test('list marks an expired token', async () => {
    await create('short', '--scope', 'query', '--expires', '1s');
    await sleep(1100);
    expect((await token('list')).stdout).toMatch(/short .*\(expired\)/);
  });

  test('revoking an unknown token fails and lists the existing tokens', async () => {
    await create('there', '--scope', 'query');
    const outcome = await token('revoke', 'nobody');
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toMatch(/there is no token nobody; existing tokens: .*there/);
  });
});

describe('dendro token without a server', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  beforeEach(() => {
    directory = createTempDirectory();
  });
  afterEach(() => directory.remove());

  const valid = ['--name', 'n', '--scope', 'query'];

  test('--tier accepts a tier of a custom endpoint only with --endpoints', async () => {
    const { yaml, sql } = FAULT;
    const tiered = yaml.replace(
      'columns:',
      `  plan:
    type: choice
    choices: { SMALL: { days: 1 }, LARGE: { days: 9 } }
    tiers: true
    description: Plan of the project.
columns:`,
    );
    const custom = writeEndpointFolders({ tiered: { yaml: tiered, sql } });
    try {
      const args = ['token', 'create', ...valid, '--data', directory.path, '--tier', 'LARGE'];
      const unknown = await runDendro(args);
      expect(unknown.code).toBe(2);
      expect(onlyLine(unknown)).toMatch(/--tier LARGE is unknown; allowed: FREE, PRO, PAYG, ENTERPRISE$/);
      expect((await runDendro([...args, '--endpoints', custom.folder])).stdout).toMatch(SECRET);
    } finally {
      custom.remove();
    }
  });

  test('no token is created in a directory that does not exist and was not named', async () => {
    const [cwd, data] = [join(directory.path, 'elsewhere'), join(directory.path, 'data')];
    mkdirSync(cwd);
    const create = ['token', 'create', ...valid];
    const wrong = `dendro: there is no directory ${join(cwd, 'data')}; name the data directory of the server with --data`;
    expect(await runDendro(create, { cwd })).toEqual({ code: 1, stdout: '', stderr: `${wrong}\n` });
    const server = await startServerHere(['--data', data]);
    try {
      for (const args of [create, ['token', 'list'], ['token', 'revoke', 'n']]) {
        const { code, stderr } = await runDendro(args, { cwd });
        expect({ code, stderr }).toEqual({ code: 1, stderr: `${wrong}; a server is running with ${data}\n` });
      }
      expect(readdirSync(cwd)).toEqual([]);
      const named = await runDendro([...create, '--data', 'other'], { cwd });
      expect(named.stderr).toBe(
        `stored in ${join(cwd, 'other/tokens.json')}; a server is running with ${data}\n`,
      );
      const above = await runDendro([...create, '--data', directory.path]);
      expect(above.stderr).toBe(
        `stored in ${join(directory.path, 'tokens.json')}; a server is running with ${data}\n`,
      );
    } finally {
      await server.stop();
    }
  });

  test('serve says that no token may query, and how to create one', async () => {
    const tokensFile = join(directory.path, 'tokens.json');
    await runDendro(['token', 'create', '--name', 'n', '--scope', 'ingest', '--data', directory.path]);
    const start = async (...args: string[]) => {
      const server = await startServerHere(['--data', directory.path, ...args]);
      await server.stop();
      return server.stderr();
    };
    const command = `dendro token create --tokens ${tokensFile} --name NAME --scope query`;
    expect(await start()).toContain(`no valid token may query; create one: ${command}`);
    const args = command.replace('NAME', 'q').split(' ').slice(1);
    expect((await runDendro(args)).stdout).toMatch(SECRET);
    expect(await start()).not.toContain('may query');
    const endpoint = [
      'token',
      'create',
      '--name',
      'e',
      '--scope',
      'query:logs.search',
      '--data',
      directory.path,
    ];
    expect((await runDendro(['token', 'revoke', 'q', '--data', directory.path])).code).toBe(0);
    expect((await runDendro(endpoint)).code).toBe(0);
    expect(await start('--packs', 'none')).toContain('no valid token may query');
  });

  test('--tokens FILE selects another file for the command and the server', async () => {
    const file = join(directory.path, 'elsewhere.json');
    const data = join(directory.path, 'data');
    const created = await runDendro(['token', 'create', ...valid, '--tokens', file]);
    expect(created.stdout).toMatch(SECRET);
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    expect(readFileSync(file, 'utf8')).not.toContain(created.stdout.trimEnd());
    const server = await startServerHere(['--data', data, '--tokens', file]);
    try {
      const headers = { 'X-API-KEY': created.stdout.trimEnd() };
      expect((await fetchResponse(`${server.url}/api/endpoints`, { headers })).status).toBe(200);
      expect(existsSync(join(data, 'tokens.json'))).toBe(false);
    } finally {
      await server.stop();
    }
    const listed = await runDendro(['token', 'list'], { env: { DENDRO_TOKENS: file } });
    expect(listed.stdout).toMatch(/^n +query /m);
    expect((await runDendro(['token', 'revoke', 'n', '--tokens', file])).code).toBe(0);
    expect((await runDendro(['token', 'list', '--tokens', file])).stdout).toBe('no tokens\n');
    const missing = await runDendro(['token', 'list', '--tokens', `${file}.other`]);
    expect(missing.stdout).toBe(`no tokens: there is no file ${file}.other\n`);
  });
});
