import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchAnswer } from '../support/app.ts';
import { writeOwnEndpoints } from '../support/own-endpoints.ts';
import { makeFolder, runDendro, type ServerProcess, startServer } from '../support/process.ts';
import { askRaw } from '../support/raw-http.ts';

const API_KEY = 'operators-own-key-of-this-run';
const GUESS = 'dnd_a-wrong-guess-that-nobody-may-find-again';
const CALL = '/api/endpoints/query/logs.all?project=alpha';

/** Passes every check at the start, and fails in the store unless its parameter is a number. */
const FAILING = {
  yaml: `
id: 3d5c1c0e-7e54-4a57-9f0c-2f1f6d0f5b03
name: own.fault
description: Made for a test.
reads: edge
parameters:
  number: { type: text, required: true, description: A number. }
columns:
  answer: { type: integer, description: The number. }
cache: none
`,
  sql: 'select cast($number as integer) as answer',
};

// Everything that the process writes is read back: both its streams and every file below its data directory.
describe('no secret that the process was given appears in what it wrote', () => {
  let folder: ReturnType<typeof makeFolder>;
  let server: ServerProcess | undefined;
  beforeEach(() => {
    folder = makeFolder();
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    folder.remove();
  });

  const ask = (path: string, headers: Record<string, string>) =>
    fetchAnswer(`${server?.url}${path}`, { headers });
  /** In every way that a token can be sent, rightly or wrongly. Answers the status of the right way. */
  const sendEverywhere = async (secret: string) => {
    const right = await ask(CALL, { 'X-API-KEY': secret });
    const others = await Promise.all([
      ask(CALL, { Authorization: `Bearer ${secret}` }),
      ask(CALL, { Authorization: `Basic ${secret}` }),
      ask(CALL, { Cookie: `token=${secret}` }),
      ask(`${CALL}&token=${secret}`, {}),
      ask(`/${secret}`, {}),
      ask(`/api/endpoints/query/${secret}`, { 'X-API-KEY': secret }),
      ask('/api/endpoints', { 'X-API-KEY': secret }),
      ask('/openapi.json', { 'X-API-KEY': secret }),
      // Fails in the store, a defect of its author, which goes to the log.
      ask('/api/endpoints/query/own.fault?number=oops', { 'X-API-KEY': secret }),
    ]);
    const refused = await Promise.all(
      [
        `GET ${CALL} HTTP/1.1\r\nHost: a\r\nX-API-KEY: ${secret}\r\nbroken header\r\n\r\n`,
        `${secret}\r\n\r\n`,
        `GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: a\r\nX-API-KEY: ${secret}\r\n\r\n`,
      ].map(request => askRaw(server?.url ?? '', request)),
    );
    const texts = [right.text, ...others.map(({ text }) => text), ...refused.map(({ body }) => body)];
    for (const text of texts) expect(text).not.toContain(secret);
    return right.status;
  };
  const filesHolding = (secrets: readonly string[]) =>
    readdirSync(folder.path, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && basename(entry.name) !== 'first-token')
      .map(entry => join(entry.parentPath, entry.name))
      .filter(file => {
        const content = readFileSync(file);
        return secrets.some(secret => content.includes(secret));
      });

  test('tokens, the API key, wrong guesses, the first token', { timeout: 60_000 }, async () => {
    const own = writeOwnEndpoints({ 'own.fault': FAILING });
    const args = ['--data', folder.path, '--endpoints', own.folder];
    try {
      // A first start without a key leaves a first token in its file.
      server = await startServer(args);
      while (!server.stdout().includes('first token')) await sleep(10);
      const first = readFileSync(join(folder.path, 'first-token'), 'utf8').trimEnd();
      await sendEverywhere(first);
      let written = Object.values(await server.stop()).join();

      const make = (name: string, ...more: string[]) =>
        runDendro(['token', 'create', '--name', name, '--scope', 'query', '--data', folder.path, ...more]);
      const made = (await make('made')).stdout.trimEnd();
      const expired = (await make('expired', '--expires', '1s')).stdout.trimEnd();
      await sleep(1100);
      server = await startServer(args, { env: { DENDRO_API_KEY: API_KEY } });
      const revoked = (await make('revoked')).stdout.trimEnd();
      await runDendro(['token', 'revoke', 'revoked', '--data', folder.path]);

      const secrets = [first, API_KEY, made, expired, revoked, GUESS];
      for (const secret of secrets) {
        const expected = [first, API_KEY, made].includes(secret) ? 200 : 401;
        while ((await ask(CALL, { 'X-API-KEY': secret })).status !== expected) await sleep(100);
        expect(await sendEverywhere(secret)).toBe(expected);
      }
      // A tokens file that breaks while it holds a secret, as a careless edit leaves it.
      writeFileSync(join(folder.path, 'tokens.json'), `{"secret":"careless-${GUESS}"`);
      await server.untilError('TOKENS FILE CANNOT BE READ');
      writeFileSync(join(folder.path, 'tokens.json'), '{"version":1,"tokens":[]}');
      await server.untilError('tokens reloaded');
      written += Object.values(await server.stop()).join();

      // It did write: the failed calls are in its log.
      expect(written).toMatch(/\/api\/endpoints\/query\/\* failed/);
      for (const secret of secrets) expect(written).not.toContain(secret);
      for (const secret of secrets) expect(written).not.toContain(secret.slice(4, 24));
      expect(filesHolding(secrets)).toEqual([]);
    } finally {
      own.remove();
    }
  });
});
