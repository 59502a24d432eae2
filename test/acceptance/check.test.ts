import { existsSync, rmSync } from 'node:fs';
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

/** The problem of a folder, the broken file, and a word that the message must contain. */
const BROKEN: [string, EndpointFiles, 'endpoint.yaml' | 'duckdb.sql', string][] = [
  ['the definition is not YAML', { yaml: 'id: [', sql }, 'endpoint.yaml', ''],
  ['the definition is empty', { yaml: '', sql }, 'endpoint.yaml', ''],
  ['the id is missing', { yaml: yaml.replace(/^id: .*$/m, ''), sql }, 'endpoint.yaml', 'id'],
  ['the id is not a UUID', { yaml: yaml.replace(/^id: .*$/m, 'id: seven'), sql }, 'endpoint.yaml', 'id'],
  [
    'the name contains a space',
    { yaml: yaml.replace('test.fault', 'test fault'), sql },
    'endpoint.yaml',
    'name',
  ],
  ['a key is unknown', { yaml: `${yaml}owner: me\n`, sql }, 'endpoint.yaml', 'owner'],
  ['max_rows is above 1000', { yaml: `${yaml}max_rows: 1001\n`, sql }, 'endpoint.yaml', 'max_rows'],
  [
    'a parameter is called format',
    { yaml: yaml.replace('number:', 'format:'), sql },
    'endpoint.yaml',
    'format',
  ],
  [
    'the type of a column is unknown',
    { yaml: yaml.replace('integer', 'integr'), sql },
    'endpoint.yaml',
    'answer',
  ],
  [
    'the name is already used',
    { yaml: yaml.replace('test.fault', 'logs.all'), sql },
    'endpoint.yaml',
    'logs.all',
  ],
  ['the SQL has a syntax error', { yaml, sql: 'selec 1 as answer' }, 'duckdb.sql', 'selec'],
  ['the SQL is empty', { yaml, sql: '-- nothing' }, 'duckdb.sql', 'statement'],
  [
    'the SQL has two statements',
    { yaml, sql: 'select 1 as answer; select 2 as answer' },
    'duckdb.sql',
    '2 statements',
  ],
  ['the SQL is not a SELECT', { yaml, sql: 'delete from edge_logs' }, 'duckdb.sql', 'SELECT'],
  ['the SQL uses an undeclared parameter', { yaml, sql: 'select $other as answer' }, 'duckdb.sql', '$other'],
  [
    'the SQL reads a table that does not exist',
    { yaml, sql: 'select answer from nowhere' },
    'duckdb.sql',
    'nowhere',
  ],
  ['the SQL returns other columns', { yaml, sql: 'select $number as question' }, 'duckdb.sql', 'question'],
  [
    'the SQL does not use a parameter',
    { yaml, sql: 'select 1 as answer' },
    'duckdb.sql',
    'does not use $number',
  ],
  [
    'the SQL returns another type',
    { yaml, sql: "select 'a' as answer where $number <> ''" },
    'duckdb.sql',
    'VARCHAR',
  ],
  [
    'the SQL reads a file',
    { yaml, sql: "select 1 as answer from read_text('/etc/hostname')" },
    'duckdb.sql',
    '',
  ],
];

describe('dendro check', () => {
  let custom: CustomEndpoints | undefined;
  afterEach(() => {
    custom?.remove();
    custom = undefined;
  });

  test('lists the endpoints and exits with 0 if there is no problem', async () => {
    custom = writeEndpointFolders({ sleep: SLEEP, fault: FAULT });
    const { code, stdout, stderr } = await runDendro(['check', '--endpoints', custom.folder]);
    expect(code).toBe(0);
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^functions\.invocation-stats +32b1a47e-6418-4d0a-9647-b9694b8a7e35$/),
      expect.stringMatching(/^logs\.all +36d4086c-7022-4186-9a0f-e33ec7d730da$/),
      expect.stringMatching(/^usage\.api-counts +0fbeca51-caaa-4f7d-83f0-8110aa708839$/),
      expect.stringMatching(/^test\.fault +/),
      expect.stringMatching(/^test\.sleep +/),
      expect.stringContaining('5 endpoints'),
      '',
    ]);
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

  test.each(['endpoint.yaml', 'duckdb.sql'])(
    'a missing %s: one line that names it, exit 1',
    async fileName => {
      custom = writeEndpointFolders({ broken: FAULT });
      const file = join(custom.folder, 'broken', fileName);
      rmSync(file);
      const outcome = await runDendro(['check', '--endpoints', custom.folder]);
      expect(outcome.code).toBe(1);
      expect(onlyLine(outcome)).toContain(file);
    },
  );

  test('dendro serve reports a broken folder with the same message', async () => {
    custom = writeEndpointFolders({ broken: { yaml, sql: 'select 1 as question' } });
    const directory = createTempDirectory();
    const args = ['--endpoints', custom.folder, '--data', directory.path];
    const checked = await runDendro(['check', ...args]);
    const served = await runDendro(['serve', ...args, '--port', '0', '--internal-port', '0']);
    directory.remove();
    expect(served.code).toBe(1);
    expect(onlyLine(served)).toBe(onlyLine(checked));
  });

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
    expect((await runDendro(['check', '--data', 'not-created'], { cwd: directory.path })).code).toBe(0);
    expect(existsSync(join(directory.path, 'not-created'))).toBe(false);
    directory.remove();
  });
});
