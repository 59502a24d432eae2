import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type CustomEndpoints,
  type EndpointFiles,
  FAULT,
  SLEEP,
  writeEndpointFolders,
} from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  startServerHere,
} from '../support/process.ts';

const { yaml, sql } = FAULT;

/** The problem of a folder, the broken file, and a word that the message must contain. test/endpoint/catalog.test.ts has them all. */
const BROKEN: [string, EndpointFiles, 'endpoint.yaml' | 'duckdb.sql', string][] = [
  ['a key is unknown', { yaml: `${yaml}owner: me\n`, sql }, 'endpoint.yaml', 'owner'],
  ['the SQL has a syntax error', { yaml, sql: 'selec 1 as answer' }, 'duckdb.sql', 'selec'],
];

describe('dendro check', () => {
  let custom: CustomEndpoints | undefined;
  afterEach(() => {
    custom?.remove();
    custom = undefined;
  });

  test('lists the endpoints and exits with 0 if there is no problem', async () => {
    custom = writeEndpointFolders({ sleep: SLEEP, fault: FAULT });
    const { code, stdout, stderr } = await runDendro([
      ...['check', '--packs', 'none', '--endpoints', custom.folder],
    ]);
    expect(code).toBe(0);
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^functions\.invocation-stats +32b1a47e-6418-4d0a-9647-b9694b8a7e35$/),
      expect.stringMatching(/^logs\.all +36d4086c-7022-4186-9a0f-e33ec7d730da$/),
      expect.stringMatching(/^usage\.api-counts +0fbeca51-caaa-4f7d-83f0-8110aa708839$/),
      expect.stringMatching(/^test\.fault +/),
      expect.stringMatching(/^test\.sleep +/),
      './data does not exist; serve will create it',
      expect.stringMatching(
        /fault.endpoint\.yaml: the name of the folder differs from the endpoint's, test\.fault$/,
      ),
      expect.stringMatching(
        /sleep.endpoint\.yaml: the name of the folder differs from the endpoint's, test\.sleep$/,
      ),
      expect.stringContaining('5 endpoints'),
      '',
    ]);
  });

  test('refuses the folder of one endpoint as --endpoints', async () => {
    custom = writeEndpointFolders({ fault: FAULT });
    const outcome = await runDendro(['check', '--endpoints', join(custom.folder, 'fault')]);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(
      'this is the folder of one endpoint; name the directory that contains',
    );
  });

  test.each(BROKEN)(
    '%s: one line that names the file and the problem, exit 1',
    async (_, files, fileName, word) => {
      custom = writeEndpointFolders({ broken: files });
      const outcome = await runDendro(['check', '--endpoints', custom.folder]);
      expect(outcome.code).toBe(1);
      expect(outcome.stdout).toBe('');
      const line = onlyLine(outcome);
      expect(line).toContain(`${join(custom.folder, 'broken', fileName)}: `);
      expect(line).toContain(word);
    },
  );

  test('runs next to a server on the same data directory without affecting it', async () => {
    const directory = createTempDirectory();
    const env = { DENDRO_API_KEY: PROCESS_API_KEY };
    const server = await startServerHere(['--data', directory.path], { env });
    try {
      const ports = ['--port', new URL(server.url).port, '--internal-port', new URL(server.internalUrl).port];
      const { code, stdout } = await runDendro(['check', '--json', '--data', directory.path, ...ports], {
        env,
      });
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ problems: [], data_directory_used_by: server.pid });
      expect((await fetch(`${server.url}/health`)).status).toBe(200);
    } finally {
      await server.stop();
      directory.remove();
    }
  });

  test('does not create the data directory', async () => {
    const directory = createTempDirectory();
    expect((await runDendro(['check', '--data', join(directory.path, 'not-created')])).code).toBe(0);
    expect(existsSync(join(directory.path, 'not-created'))).toBe(false);
    directory.remove();
  });
});
