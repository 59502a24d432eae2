import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { writeEndpointFolders } from '../support/custom-endpoints.ts';
import { createTempDirectory, runDendro, type ServerHere, startServerHere } from '../support/process.ts';
import { sendRaw } from '../support/raw-http.ts';

const API_KEY = 'operators-own-key-of-this-run';
const GUESS = 'dnd_a-wrong-guess-that-nobody-may-find-again';
const CALL = '/api/endpoints/query/logs.all?project=alpha';

/** Passes every check at startup, and fails in the store if its parameter is not a number. */
const FAILING = {
  yaml: `
id: 3d5c1c0e-7e54-4a57-9f0c-2f1f6d0f5b03
name: custom.failing
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

// Reads everything that the process wrote: both streams and every file in its data directory.
describe('secrets in the output and the files of the process', () => {
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

  const ask = (path: string, headers: Record<string, string>) =>
    fetchResponse(`${server?.url}${path}`, { headers });
  /** Sends a token in every correct and incorrect way. Returns the status of the correct way. */
  const sendEverywhere = async (secret: string) => {
    const correct = await ask(CALL, { 'X-API-KEY': secret });
    const others = await Promise.all([
      ask(CALL, { Authorization: `Bearer ${secret}` }),
      ask(CALL, { Authorization: `Basic ${secret}` }),
      ask(CALL, { Cookie: `token=${secret}` }),
      ask(`${CALL}&token=${secret}`, {}),
      ask(`/${secret}`, {}),
      ask(`/api/endpoints/query/${secret}`, { 'X-API-KEY': secret }),
      ask('/api/endpoints', { 'X-API-KEY': secret }),
      ask('/openapi.json', { 'X-API-KEY': secret }),
      // Fails in the store, which is logged.
      ask('/api/endpoints/query/custom.failing?number=oops', { 'X-API-KEY': secret }),
    ]);
    const malformed = await Promise.all(
      [
        `GET ${CALL} HTTP/1.1\r\nHost: a\r\nX-API-KEY: ${secret}\r\nbroken header\r\n\r\n`,
        `${secret}\r\n\r\n`,
        `GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: a\r\nX-API-KEY: ${secret}\r\n\r\n`,
      ].map(request => sendRaw(server?.url ?? '', request)),
    );
    const texts = [correct.text, ...others.map(({ text }) => text), ...malformed.map(({ body }) => body)];
    for (const text of texts) expect(text).not.toContain(secret);
    return correct.status;
  };
  const filesContaining = (secrets: readonly string[]) =>
    readdirSync(directory.path, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && basename(entry.name) !== 'first-token')
      .map(entry => join(entry.parentPath, entry.name))
      .filter(file => {
        const content = readFileSync(file);
        return secrets.some(secret => content.includes(secret));
      });

  test('tokens, the API key, wrong guesses and the first token never appear', async () => {
    const custom = writeEndpointFolders({ 'custom.failing': FAILING });
    const args = ['--data', directory.path, '--endpoints', custom.folder];
    try {
      // The first start without a key writes a first token to a file.
      server = await startServerHere(args);
      while (!server.stdout().includes('first token')) await sleep(10);
      const first = readFileSync(join(directory.path, 'first-token'), 'utf8').trimEnd();
      await sendEverywhere(first);
      let written = Object.values(await server.stop()).join();

      const create = (name: string, ...more: string[]) =>
        runDendro(['token', 'create', '--name', name, '--scope', 'query', '--data', directory.path, ...more]);
      const valid = (await create('valid')).stdout.trimEnd();
      const expired = (await create('expired', '--expires', '1s')).stdout.trimEnd();
      await sleep(1100);
      server = await startServerHere(args, { env: { DENDRO_API_KEY: API_KEY } });
      const revoked = (await create('revoked')).stdout.trimEnd();
      await runDendro(['token', 'revoke', 'revoked', '--data', directory.path]);

      const secrets = [first, API_KEY, valid, expired, revoked, GUESS];
      for (const secret of secrets) {
        const expected = [first, API_KEY, valid].includes(secret) ? 200 : 401;
        while ((await ask(CALL, { 'X-API-KEY': secret })).status !== expected) await sleep(100);
        expect(await sendEverywhere(secret)).toBe(expected);
      }
      // A tokens file that becomes invalid while it contains a secret, as after a careless edit.
      writeFileSync(join(directory.path, 'tokens.json'), `{"secret":"careless-${GUESS}"`);
      await expect.poll(() => server?.stderr()).toContain('TOKENS FILE CANNOT BE READ');
      writeFileSync(join(directory.path, 'tokens.json'), '{"version":1,"tokens":[]}');
      await expect.poll(() => server?.stderr()).toContain('tokens reloaded');
      written += Object.values(await server.stop()).join();

      // The log is not empty: it contains the failed requests.
      expect(written).toMatch(/custom\.failing failed with 500/);
      for (const secret of secrets) expect(written).not.toContain(secret);
      for (const secret of secrets) expect(written).not.toContain(secret.slice(4, 24));
      expect(filesContaining(secrets)).toEqual([]);
    } finally {
      custom.remove();
    }
  });
});
