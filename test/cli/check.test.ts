import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createReaderInstance } from '../../src/store/duckdb/part-writer.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/config.ts';
import { FAULT, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  startServerHere,
} from '../support/process.ts';
import { edgeRecord } from '../support/record.ts';
import { createSelfSigned } from '../support/self-signed.ts';
import { batches } from '../support/store.ts';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

/** What serve refuses: the arguments, and words of the message. PORT is a port in use. */
const REFUSED: [problem: string, args: string, words: string][] = [
  [
    'a certificate that does not exist',
    '--tls-cert no.pem --tls-key key.pem',
    '--tls-cert no.pem cannot be read',
  ],
  [
    'a certificate that is none',
    '--tls-cert text --tls-key key.pem',
    '--tls-cert text is not a PEM certificate',
  ],
  [
    'a key of another certificate',
    '--tls-cert cert.pem --tls-key other.pem',
    '--tls-key other.pem is not the',
  ],
  [
    'a key of another certificate, for the internal listener',
    '--internal-tls-cert cert.pem --internal-tls-key other.pem',
    '--internal-tls-key other.pem is not the',
  ],
  [
    'a public port in use',
    '--port PORT',
    'cannot listen on 127.0.0.1:PORT: the port is in use by another program; choose another one with --port',
  ],
  [
    'an internal port in use',
    '--internal-port PORT',
    'the port is in use by another program; choose another one with --internal-port',
  ],
  ['an address of another machine', '--host 192.0.2.1', 'this machine does not have this address'],
  ['a data directory that is a file', '--data text', 'cannot write to the data directory text: ENOTDIR'],
  [
    'a data directory below a file',
    '--data text/data',
    'cannot create the data directory text/data: ENOTDIR',
  ],
  ['a data directory of a newer version', '--data newer', 'was written by Dendro 9.1.0 in format 99'],
  ['a manifest that is damaged', '--data damaged', 'damaged/manifest.json: Unexpected token'],
  ['an endpoint with invalid SQL', '--endpoints broken', 'broken/broken/duckdb.sql: '],
  ['a tokens file that is damaged', '--tokens text', 'text: not a tokens file that this version can read'],
  ...(isRoot
    ? ([
        [
          'a data directory of another user',
          '--data foreign',
          `run it as the owner: sudo -u '#${NOBODY}' dendro`,
        ],
      ] as [string, string, string][])
    : []),
];

describe('dendro check', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let port = 0;
  const checkout = process.cwd();
  const listener = createServer();
  beforeAll(async () => {
    directory = createTempDirectory();
    process.chdir(directory.path);
    for (const name of ['newer', 'damaged', 'foreign']) mkdirSync(name);
    mkdirSync('foreign/spool');
    if (isRoot) chownSync('foreign/spool', NOBODY, NOBODY);
    writeFileSync('text', 'text');
    writeFileSync('newer/format.json', '{"format":99,"version":"9.1.0"}');
    writeFileSync('damaged/manifest.json', 'not JSON');
    mkdirSync('broken');
    writeEndpointFolders({ broken: { yaml: FAULT.yaml, sql: 'selec 1 as answer' } }, 'broken');
    const { cert, key } = createSelfSigned();
    for (const [name, content] of Object.entries({ cert, key, other: createSelfSigned().key }))
      writeFileSync(`${name}.pem`, content);
    await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve));
    port = (listener.address() as { port: number }).port;
  });
  afterAll(() => {
    listener.close();
    process.chdir(checkout);
    directory.remove();
  });

  const fill = (text: string) => text.replaceAll('PORT', String(port));
  const check = (args: readonly string[]) => runDendro(['check', ...args]);

  test.each(REFUSED)('finds %s (%s), with the message of serve', async (_, args, words) => {
    const given = fill(args).split(' ');
    const found = await check(given);
    expect(found).toMatchObject({ code: 1, stdout: '' });
    expect(onlyLine(found)).toContain(fill(words));
    expect(await runDendro(['serve', ...given])).toEqual(found);
  });

  test('lists endpoints, notes a data directory that does not exist, and a folder that is not named like its endpoint', async () => {
    const { folder, remove } = writeEndpointFolders({ misnamed: FAULT });
    const { code, stdout, stderr } = await check([
      '--packs',
      'none',
      '--data',
      'none',
      '--endpoints',
      folder,
    ]);
    remove();
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^logs\.all +36d4086c-7022-4186-9a0f-e33ec7d730da$/m);
    expect(stdout).toMatch(/^test\.fault +/m);
    expect(stdout).toContain('4 endpoints');
    expect(stdout).toContain('none does not exist; serve will create it\n');
    expect(stdout).toMatch(
      /misnamed\/endpoint.yaml: the name of the folder differs from the endpoint's, test.fault\n/,
    );
    expect(existsSync('none')).toBe(false);
  });

  test('refuses the folder of one endpoint as --endpoints', async () => {
    const { folder, remove } = writeEndpointFolders({ fault: FAULT });
    const outcome = await check(['--endpoints', join(folder, 'fault')]);
    remove();
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(
      'this is the folder of one endpoint; name the directory that contains',
    );
  });

  test('runs next to a server on the same data directory without affecting it', async () => {
    const env = { DENDRO_API_KEY: PROCESS_API_KEY };
    const server = await startServerHere(['--data', 'served'], { env });
    try {
      const ports = ['--port', new URL(server.url).port, '--internal-port', new URL(server.internalUrl).port];
      const { code, stdout } = await runDendro(['check', '--json', '--data', 'served', ...ports], { env });
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ problems: [], data_directory_used_by: server.pid });
      expect((await fetch(`${server.url}/health`)).status).toBe(200);
    } finally {
      await server.stop();
    }
  });

  test('prints the parts that the next start would set aside, as text and as JSON, and finds no problem', async () => {
    const store = await openStore(testStoreOptions('incomplete'));
    await store.append(batches('edge', [edgeRecord({ at: '2026-11-17T00:00:00Z', project: 'p' })]));
    await store.close();
    const [part] = readdirSync('incomplete/parts');
    rmSync(`incomplete/parts/${part}`);
    const { code, stdout } = await check(['--data', 'incomplete']);
    expect(code).toBe(0);
    expect(stdout).toContain(`parts/${part}: the file does not exist`);
    expect(stdout).toContain('no problems found');
    const json = await check(['--data', 'incomplete', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ problems: [], repairable: [{ file: `parts/${part}` }] });
  });

  test('commands that read the store create no temporary files in the working directory', async () => {
    const instance = await createReaderInstance('50MB');
    const connection = await instance.connect();
    const sorted = connection.run('create temp table sorted as from range(20_000_000) order by hash(range)');
    await expect(sorted).rejects.toThrow('Out of Memory');
    expect(existsSync('.tmp')).toBe(false);
    connection.closeSync();
    instance.closeSync();
  });

  test('finds a tokens file that cannot be created', async () => {
    expect(onlyLine(await check(['--tokens', 'text/tokens.json']))).toContain(
      'tokens file text/tokens.json: ENOTDIR',
    );
  });

  test('lists all endpoints with a pattern of like that DuckDB could match for hours', async () => {
    const sql = "select 1 as answer where $number like '%a%b%c%'";
    const yamlOf = (name: string, id: string) =>
      FAULT.yaml.replaceAll('test.fault', name).replace(/^id: .*$/m, `id: ${id}`);
    const { folder, remove } = writeEndpointFolders({
      'test.one': { yaml: yamlOf('test.one', 'd2f7a3de-0d3c-4c39-8a0d-0e6d7f6b1a01'), sql },
      'test.two': { yaml: yamlOf('test.two', 'd2f7a3de-0d3c-4c39-8a0d-0e6d7f6b1a02'), sql },
    });
    expect(onlyLine(await check(['--endpoints', folder]))).toMatch(
      /2 problems: \(1\) \S*test\.one\/duckdb\.sql: uses like with more than 2 wildcards.*\(2\) \S*test\.two/,
    );
    remove();
  });

  test('reports all problems in one line, and with --json as a list', async () => {
    const args = ['--tokens', 'text', '--endpoints', 'text', '--json'];
    const found = await check(args);
    expect(onlyLine(found)).toMatch(
      /^dendro: 2 problems: \(1\) text: not a tokens file.*; \(2\) cannot read the endpoint/,
    );
    expect(JSON.parse(found.stdout)).toEqual({
      endpoints: [],
      problems: [expect.stringContaining('text: not a tokens file'), expect.stringContaining('ENOTDIR')],
      repairable: [],
      notes: [],
      store_of_earlier_release: false,
      data_directory_used_by: null,
    });
  });
});
