import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fetchAnswer } from '../support/app.ts';
import {
  makeFolder,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerProcess,
  startServer,
} from '../support/process.ts';

const SECRET = /^dnd_[A-Za-z0-9_-]{43}\n$/;

describe('dendro token beside a running server', () => {
  let folder: ReturnType<typeof makeFolder>;
  let server: ServerProcess;
  beforeAll(async () => {
    folder = makeFolder();
    server = await startServer(['--data', folder.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  });
  afterAll(async () => {
    await server.stop();
    folder.remove();
  });

  const token = (...args: string[]) => runDendro(['token', ...args, '--data', folder.path]);
  const create = async (name: string, ...args: string[]) => {
    const { code, stdout, stderr } = await token('create', '--name', name, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(SECRET);
    return stdout.trimEnd();
  };
  const ask = (secret: string, path = '/api/endpoints/query/logs.all?project=alpha') =>
    fetchAnswer(`${server.url}${path}`, { headers: { 'X-API-KEY': secret } });
  /** Asks until the status is there. The promise is 1 s; on a busy machine only the order of things is certain. */
  const untilStatus = async (secret: string, expected: number, path?: string) => {
    for (let tries = 0; tries < 100; tries++) {
      if ((await ask(secret, path)).status === expected) return;
      await sleep(100);
    }
    throw new Error(`no ${expected} within 10 s`);
  };

  test('a token that is made works, one that is revoked does not, without a restart', async () => {
    const secret = await create('dashboard', '--scope', 'query');
    await untilStatus(secret, 200);
    const revoked = await token('revoke', 'dashboard');
    expect(revoked).toEqual({ code: 0, stdout: 'revoked dashboard\n', stderr: '' });
    await untilStatus(secret, 401);
    expect((await ask(PROCESS_API_KEY)).status).toBe(200);
  });

  test('its scopes, projects, expiry and rate are those of the flags', async () => {
    const narrow = await create(
      'narrow',
      '--scope',
      'query:logs.all',
      '--scope',
      'ingest',
      '--project',
      'alpha',
    );
    await untilStatus(narrow, 200);
    expect(
      (await ask(narrow, '/api/endpoints/query/usage.api-counts?project=alpha&interval=daily')).status,
    ).toBe(403);
    expect((await ask(narrow, '/api/endpoints/query/logs.all?project=beta')).status).toBe(403);
    const slow = await create('slow', '--scope', 'query', '--rate', '0.01');
    await untilStatus(slow, 429);
    const brief = await create('brief', '--scope', 'query', '--expires', '2s');
    await untilStatus(brief, 200);
    await untilStatus(brief, 401);
  });

  test('a name that is taken is refused, and the first token stays', async () => {
    const secret = await create('taken', '--scope', 'query');
    const again = await token('create', '--name', 'taken', '--scope', 'query');
    expect(again.code).toBe(1);
    expect(again.stdout).toBe('');
    expect(onlyLine(again)).toContain('there is a token taken already');
    await untilStatus(secret, 200);
  });

  test('a name can be given again once it is revoked, and the old secret stays dead', async () => {
    const old = await create('again', '--scope', 'query');
    await token('revoke', 'again');
    const next = await create('again', '--scope', 'query');
    await untilStatus(next, 200);
    expect((await ask(old)).status).toBe(401);
  });

  test('list shows what a token may, and never the secret nor its hash', async () => {
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

  test('list tells when a token was last used, once the server has written it', async () => {
    const secret = await create('used', '--scope', 'query');
    await untilStatus(secret, 200);
    await server.stop(); // it writes on its way out
    server = await startServer(['--data', folder.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    const line = (await token('list')).stdout.split('\n').find(text => text.startsWith('used')) ?? '';
    expect(line).toMatch(/ never +20\d\d-\d\d-\d\dT[\d:.]+Z/); // never expires; used then
  });

  test('a token that has expired is listed as such', async () => {
    await create('short', '--scope', 'query', '--expires', '1s');
    await sleep(1100);
    expect((await token('list')).stdout).toMatch(/short .*\(expired\)/);
  });

  test('revoking what is not there is refused, and says what there is', async () => {
    await create('there', '--scope', 'query');
    const outcome = await token('revoke', 'nobody');
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toMatch(/there is no token nobody; tokens are .*there/);
  });
});

describe('dendro token by itself', () => {
  let folder: ReturnType<typeof makeFolder>;
  beforeEach(() => {
    folder = makeFolder();
  });
  afterEach(() => folder.remove());

  const tokensFile = () => join(folder.path, 'tokens.json');

  // What is wrong with the flags: one line, exit code 2, and no tokens file.
  const good = ['--name', 'n', '--scope', 'query'];
  test.each<[string, string[], string]>([
    ['no name', ['--scope', 'query'], '--name is required'],
    ['an empty name', ['--name', '', '--scope', 'query'], '--name is required'],
    ['no scope', ['--name', 'n'], '--scope is needed; allowed are query, query:<endpoint name>'],
    ['a bad scope', ['--name', 'n', '--scope', 'admin'], '--scope admin; allowed are'],
    ['a bad scope among good ones', [...good, '--scope', 'ingest:nothing'], '--scope ingest:nothing'],
    [
      'a rate that is no number',
      [...good, '--rate', 'fast'],
      '--rate fast is not a number of requests a second',
    ],
    ['a rate of 0', [...good, '--rate', '0'], '--rate 0 '],
    ['a rate below 0', [...good, '--rate=-1'], '--rate -1 '],
    ['a rate beyond all numbers', [...good, '--rate', '9'.repeat(400)], '--rate 999'],
    ['a tier that is none', [...good, '--tier', 'GOLD'], '--tier GOLD is not known; allowed are FREE, PRO'],
    ['a tier in small letters', [...good, '--tier', 'pro'], '--tier pro is not known'],
    ['an expiry without a unit', [...good, '--expires', '90'], '--expires 90 is not a duration such as 30s'],
    ['an expiry of 0', [...good, '--expires', '0d'], '--expires 0d'],
    ['an expiry in weeks', [...good, '--expires', '2w'], '--expires 2w'],
    ['an expiry below 0', [...good, '--expires=-1d'], '--expires -1d'],
    ['an empty project, as an unset variable gives', [...good, '--project', ''], '--project'],
    ['a flag that it does not have', [...good, '--admin'], "Unknown option '--admin'"],
    ['two names', [...good, '--name', 'm'], '--name is given 2 times'],
    ['a word too many', ['extra', ...good], 'extra'],
  ])('create with %s', async (_, args, words) => {
    const outcome = await runDendro(['token', 'create', ...args, '--data', folder.path]);
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code: 2, stdout: '' });
    expect(onlyLine(outcome)).toContain(words);
    expect(existsSync(tokensFile())).toBe(false);
  });

  test.each([[[]], [['rotate']], [['revoke']], [['revoke', 'a', 'b']], [['list', 'a']]])(
    'token %j is told how to call it',
    async args => {
      const outcome = await runDendro(['token', ...args, '--data', folder.path]);
      expect(outcome.code).toBe(2);
      onlyLine(outcome);
    },
  );

  test('no tokens: list says so', async () => {
    const outcome = await runDendro(['token', 'list', '--data', folder.path]);
    expect(outcome).toEqual({ code: 0, stdout: 'no tokens\n', stderr: '' });
  });

  test('a token made before the first start makes the data directory, and the first start makes no other', async () => {
    const data = join(folder.path, 'new', 'data');
    const { code, stdout } = await runDendro(['token', 'create', ...good, '--data', data]);
    expect(code).toBe(0);
    const server = await startServer(['--data', data]);
    try {
      expect(existsSync(join(data, 'first-token'))).toBe(false);
      const headers = { 'X-API-KEY': stdout.trimEnd() };
      expect((await fetchAnswer(`${server.url}/api/endpoints`, { headers })).status).toBe(200);
    } finally {
      await server.stop();
    }
  });

  test('--tokens FILE keeps them elsewhere, for the command and for the server', async () => {
    const file = join(folder.path, 'elsewhere.json');
    const data = join(folder.path, 'data');
    const made = await runDendro(['token', 'create', ...good, '--tokens', file]);
    expect(made.stdout).toMatch(SECRET);
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    expect(readFileSync(file, 'utf8')).not.toContain(made.stdout.trimEnd());
    const server = await startServer(['--data', data, '--tokens', file]);
    try {
      const headers = { 'X-API-KEY': made.stdout.trimEnd() };
      expect((await fetchAnswer(`${server.url}/api/endpoints`, { headers })).status).toBe(200);
      expect(existsSync(join(data, 'tokens.json'))).toBe(false);
    } finally {
      await server.stop();
    }
    const listed = await runDendro(['token', 'list'], { env: { DENDRO_TOKENS: file } });
    expect(listed.stdout).toMatch(/^n +query /m);
    expect((await runDendro(['token', 'revoke', 'n', '--tokens', file])).code).toBe(0);
    expect((await runDendro(['token', 'list', '--tokens', file])).stdout).toBe('no tokens\n');
  });
});
