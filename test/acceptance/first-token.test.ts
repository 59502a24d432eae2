import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import {
  createTempDirectory,
  onlyLine,
  runDendro,
  type ServerHere,
  startServerHere,
} from '../support/process.ts';

describe('tokens of a new data directory', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let server: ServerHere | undefined;
  beforeEach(() => {
    directory = createTempDirectory();
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    directory.remove();
  });

  const statusWith = async (token: string) => {
    const url = `${server?.url}/api/endpoints/query/logs.all?project=a`;
    return (await fetchResponse(url, { headers: { 'X-API-KEY': token } })).status;
  };
  const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);
  /** The line may be printed shortly after those of the listeners. */
  const firstTokenFile = async () => {
    const line = /^first token: in the file (.+)$/m;
    while (!line.test(server?.stdout() ?? '')) await sleep(10);
    return line.exec(server?.stdout() ?? '')?.[1] ?? '';
  };

  test('the first startup writes a valid token to a file of mode 0600 and prints its path', async () => {
    server = await startServerHere(['--data', directory.path]);
    const file = await firstTokenFile();
    expect(modeOf(file)).toBe('600');
    const secret = readFileSync(file, 'utf8').trimEnd();
    expect(secret).toMatch(/^dnd_[A-Za-z0-9_-]{43}$/);
    expect(await statusWith(secret)).toBe(200);
    expect(server.stdout() + server.stderr()).not.toContain(secret);
    expect(await statusWith(`${secret}x`)).toBe(401);
    const tokensFile = join(directory.path, 'tokens.json');
    expect(modeOf(tokensFile)).toBe('600');
    expect(JSON.parse(readFileSync(tokensFile, 'utf8')).tokens).toMatchObject([
      { scopes: ['query', 'ingest', 'metrics', 'admin', 'studio'] },
    ]);
  });

  test('on a terminal, the first startup prints the token and a link that opens the console signed in', async () => {
    server = await startServerHere(['--data', directory.path, '--host', '0.0.0.0'], { isTTY: true });
    const link = /^open the console, signed in: (http:.+)\/#token=(dnd_.+)$/m;
    while (!link.test(server.stdout())) await sleep(10);
    const [, url, secret = ''] = link.exec(server.stdout()) ?? [];
    expect(url).toBe(server.url.replace('0.0.0.0', '127.0.0.1'));
    expect(server.stdout()).toContain(`first token, shown once: ${secret}\n`);
    expect(await statusWith(secret)).toBe(200);
    await server.stop();
    server = await startServerHere(['--data', directory.path], { isTTY: true });
    expect(server.stdout()).not.toContain('token');
  });

  test('the second startup creates no token, and the first token stays valid', async () => {
    server = await startServerHere(['--data', directory.path]);
    const secret = readFileSync(await firstTokenFile(), 'utf8').trimEnd();
    const before = readFileSync(join(directory.path, 'tokens.json'), 'utf8');
    await server.stop();
    server = await startServerHere(['--data', directory.path]);
    expect(await statusWith(secret)).toBe(200);
    expect((await server.stop()).stdout).not.toContain('first token');
    expect(readFileSync(join(directory.path, 'tokens.json'), 'utf8')).toBe(before);
  });

  test('the first token is known and valid if the startup that creates it fails in a later step', async () => {
    const invalid = join(directory.path, 'erase.json');
    writeFileSync(invalid, '{');
    const failed = await runDendro(['serve', '--data', directory.path]);
    expect(failed.code).toBe(1);
    expect(onlyLine(failed)).toContain('erase.json');
    const file = join(directory.path, 'first-token');
    expect(failed.stdout).toBe(`first token: in the file ${file}\n`);
    rmSync(invalid);
    server = await startServerHere(['--data', directory.path]);
    expect(await statusWith(readFileSync(file, 'utf8').trimEnd())).toBe(200);
  });

  test('DENDRO_INGEST_KEY and DENDRO_QUERY_KEY have one scope each, and no first token is created', async () => {
    const [ingestKey, queryKey] = ['a-key-that-only-sends', 'a-key-that-only-reads'];
    server = await startServerHere(['--data', directory.path], {
      env: { DENDRO_INGEST_KEY: ingestKey, DENDRO_QUERY_KEY: queryKey },
    });
    const statusesOf = async (key: string) => {
      const headers = { 'X-API-KEY': key };
      const body = '[{"project":"a","message":"m"}]';
      const posted = await fetch(`${server?.internalUrl}/api/logs?source_name=edge`, {
        method: 'POST',
        headers,
        body,
      });
      const metrics = await fetch(`${server?.internalUrl}/metrics`, { headers });
      return [await statusWith(key), posted.status, metrics.status];
    };
    expect(await statusesOf(ingestKey)).toEqual([403, 200, 403]);
    expect(await statusesOf(queryKey)).toEqual([200, 403, 403]);
    expect((await server.stop()).stdout).not.toContain('first token');
    expect(readdirSync(directory.path)).not.toContain('tokens.json');
  });

  test('two variables with the same key are rejected by name: one line, exit 2', async () => {
    const key = 'the-same-value-twice';
    const outcome = await runDendro(['serve', '--data', directory.path], {
      env: { DENDRO_INGEST_KEY: key, DENDRO_QUERY_KEY: key },
    });
    expect(outcome.code).toBe(2);
    expect(onlyLine(outcome)).toContain('DENDRO_INGEST_KEY and DENDRO_QUERY_KEY have the same value');
    expect(outcome.stderr).not.toContain(key);
  });

  test.each([
    ['DENDRO_API_KEY', '', 'is empty'],
    ['DENDRO_INGEST_KEY', 'x'.repeat(15), 'is too short; it must have at least 16'],
    ['DENDRO_QUERY_KEY', 'spaces in between it', 'header'],
    ['DENDRO_API_KEY', 'schl\u00fcssel-ohne-gleichen', 'header'],
  ])('%s %j is rejected: one line that names it and not the key, exit 2', async (variable, key, words) => {
    const outcome = await runDendro(['serve', '--data', directory.path], { env: { [variable]: key } });
    expect(outcome).toMatchObject({ code: 2, stdout: '' });
    expect(onlyLine(outcome)).toContain(words);
    expect(onlyLine(outcome)).toMatch(new RegExp(`^dendro: ${variable} `));
    if (key !== '') expect(outcome.stderr).not.toContain(key);
  });
});
