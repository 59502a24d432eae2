import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type EndpointFiles,
  FAULT,
  type OwnEndpoints,
  SLEEP,
  writeOwnEndpoints,
} from '../support/own-endpoints.ts';
import { makeFolder, onlyLine, PROCESS_API_KEY, runDendro, startServer } from '../support/process.ts';

const { yaml, sql } = FAULT;

/** What is wrong with a folder, the file at fault, and a word that the line has to hold. */
const BROKEN: [string, EndpointFiles, 'endpoint.yaml' | 'duckdb.sql', string][] = [
  ['the definition is no YAML', { yaml: 'id: [', sql }, 'endpoint.yaml', ''],
  ['the definition is empty', { yaml: '', sql }, 'endpoint.yaml', ''],
  ['the id is missing', { yaml: yaml.replace(/^id: .*$/m, ''), sql }, 'endpoint.yaml', 'id'],
  ['the id is no UUID', { yaml: yaml.replace(/^id: .*$/m, 'id: seven'), sql }, 'endpoint.yaml', 'id'],
  ['the name has a space', { yaml: yaml.replace('test.fault', 'test fault'), sql }, 'endpoint.yaml', 'name'],
  ['a key is not known', { yaml: `${yaml}owner: me\n`, sql }, 'endpoint.yaml', 'owner'],
  ['max rows are too many', { yaml: `${yaml}max_rows: 1001\n`, sql }, 'endpoint.yaml', 'max_rows'],
  [
    'a parameter is called format',
    { yaml: yaml.replace('number:', 'format:'), sql },
    'endpoint.yaml',
    'format',
  ],
  [
    'a column has no type of ours',
    { yaml: yaml.replace('integer', 'integr'), sql },
    'endpoint.yaml',
    'answer',
  ],
  ['the name is taken', { yaml: yaml.replace('test.fault', 'logs.all'), sql }, 'endpoint.yaml', 'logs.all'],
  ['the SQL does not parse', { yaml, sql: 'selec 1 as answer' }, 'duckdb.sql', 'selec'],
  ['the SQL is empty', { yaml, sql: '-- nothing' }, 'duckdb.sql', 'statement'],
  [
    'the SQL is two statements',
    { yaml, sql: 'select 1 as answer; select 2 as answer' },
    'duckdb.sql',
    '2 statements',
  ],
  ['the SQL is no SELECT', { yaml, sql: 'delete from edge_logs' }, 'duckdb.sql', 'SELECT'],
  ['the SQL uses what is not declared', { yaml, sql: 'select $other as answer' }, 'duckdb.sql', '$other'],
  [
    'the SQL names no table that exists',
    { yaml, sql: 'select answer from nowhere' },
    'duckdb.sql',
    'nowhere',
  ],
  ['the SQL answers other columns', { yaml, sql: 'select 1 as question' }, 'duckdb.sql', 'question'],
  ['the SQL answers another type', { yaml, sql: "select 'a' as answer" }, 'duckdb.sql', 'VARCHAR'],
  [
    'the SQL reads a file',
    { yaml, sql: "select 1 as answer from read_text('/etc/hostname')" },
    'duckdb.sql',
    '',
  ],
];

describe('dendro check', () => {
  let own: OwnEndpoints | undefined;
  afterEach(() => {
    own?.remove();
    own = undefined;
  });

  test('lists the endpoints, and is content', async () => {
    own = writeOwnEndpoints({ sleep: SLEEP, fault: FAULT });
    const { code, stdout, stderr } = await runDendro(['check', '--endpoints', own.folder]);
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
    '%s: one line that names the file and the fault, exit 1',
    async (_, files, fileName, word) => {
      own = writeOwnEndpoints({ broken: files });
      const outcome = await runDendro(['check', '--endpoints', own.folder]);
      expect(outcome.code).toBe(1);
      expect(outcome.stdout).toBe('');
      const line = onlyLine(outcome);
      expect(line).toContain(`${join(own.folder, 'broken', fileName)}: `);
      expect(line).toContain(word);
    },
  );

  test.each(['endpoint.yaml', 'duckdb.sql'])('a missing %s is named', async fileName => {
    own = writeOwnEndpoints({ broken: FAULT });
    const file = join(own.folder, 'broken', fileName);
    rmSync(file);
    const outcome = await runDendro(['check', '--endpoints', own.folder]);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(file);
  });

  test('a folder of endpoints that is not there is named', async () => {
    const outcome = await runDendro(['check', '--endpoints', '/no/such/folder']);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain('/no/such/folder');
  });

  test('dendro serve refuses a broken folder with the same words', async () => {
    own = writeOwnEndpoints({ broken: { yaml, sql: 'select 1 as question' } });
    const folder = makeFolder();
    const args = ['--endpoints', own.folder, '--data', folder.path];
    const checked = await runDendro(['check', ...args]);
    const served = await runDendro(['serve', ...args, '--port', '0', '--internal-port', '0']);
    folder.remove();
    expect(served.code).toBe(1);
    expect(onlyLine(served)).toBe(onlyLine(checked));
  });

  test('runs beside a server on the same data, and leaves it alone', async () => {
    const folder = makeFolder();
    const env = { DENDRO_API_KEY: PROCESS_API_KEY };
    const server = await startServer(['--data', folder.path], { env });
    try {
      expect((await runDendro(['check', '--data', folder.path], { env })).code).toBe(0);
      expect((await fetch(`${server.url}/health`)).status).toBe(200);
    } finally {
      await server.stop();
      folder.remove();
    }
  });

  test('makes no data directory', async () => {
    const folder = makeFolder();
    expect((await runDendro(['check', '--data', 'not-made'], { cwd: folder.path })).code).toBe(0);
    expect(existsSync(join(folder.path, 'not-made'))).toBe(false);
    folder.remove();
  });
});
