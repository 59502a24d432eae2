import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type {
  ErrorCode as ClientErrorCode,
  CatalogParameter as ClientParameter,
} from '../../client/index.ts';
import { generateBuiltInTypes, generateTypes } from '../../src/cli/types.ts';
import { SHIPPED_ENDPOINTS } from '../../src/config.ts';
import type { ErrorCode } from '../../src/domain/errors.ts';
import { loadDefinitions } from '../../src/endpoint/catalog.ts';
import {
  type CatalogEntry,
  type CatalogParameter,
  toCatalogEntry,
} from '../../src/endpoint/catalog-entry.ts';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import {
  BUILT_IN,
  type CustomEndpoints,
  documentedEndpoint,
  writeEndpointFolders,
} from '../support/custom-endpoints.ts';
import { createTempDirectory, runDendro } from '../support/process.ts';

const ROOT = join(import.meta.dirname, '../..');

test('the types of the built-in endpoints and packs are current; vitest -u updates them', async () => {
  const definitions = loadDefinitions(SHIPPED_ENDPOINTS);
  await expect(generateBuiltInTypes(definitions.map(toCatalogEntry))).toMatchFileSnapshot(
    join(ROOT, 'client/endpoints.ts'),
  );
});

test('the client has the error codes of the API, and three of its own', () => {
  type Own = Exclude<ClientErrorCode, ErrorCode>;
  const own: Record<Own, true> = { unreachable: true, unreadable: true, unexpected: true };
  const missing: Exclude<ErrorCode, ClientErrorCode>[] = [];
  expect([Object.keys(own).length, missing.length]).toEqual([3, 0]);
});

test('the client has all fields of a parameter in the catalog, with their types', () => {
  const missing: Exclude<keyof CatalogParameter, keyof ClientParameter>[] = [];
  const convert = (parameter: CatalogParameter): ClientParameter => parameter;
  expect([missing.length, typeof convert]).toEqual([0, 'function']);
});

describe('dendro types', () => {
  let custom: CustomEndpoints;
  let app: TestApp;
  let directory: ReturnType<typeof createTempDirectory>;
  beforeAll(async () => {
    custom = writeEndpointFolders({ documented: documentedEndpoint() });
    app = await startTestApp({ endpointFolders: { builtIn: BUILT_IN, custom: custom.folder } });
    directory = createTempDirectory();
    mkdirSync(join(directory.path, 'node_modules'));
    symlinkSync(ROOT, join(directory.path, 'node_modules/dendro'));
    const { code, stdout, stderr } = await runDendro(['types', '--url', app.url], {
      env: { DENDRO_TOKEN: API_KEY },
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    writeFileSync(join(directory.path, 'endpoints.d.ts'), stdout);
  });
  afterAll(async () => {
    await app?.close();
    custom?.remove();
    directory?.remove();
  });

  test('prints types with which right calls compile, and wrong ones do not', () => {
    const evil = createEvilEntry();
    const right = [
      "const stats = await client.query('functions.invocation-stats', { project: 'a', interval: '1hr' });",
      'export const count: number | undefined = stats.rows[0]?.count;',
      'export const p95: number | null | undefined = stats.rows[0]?.p95_execution_time;',
      'const end = { iso_timestamp_end: new Date(), project_tier: undefined };',
      "const logs = await client.query('logs.all', { project: 'a', ...end }, { signal: AbortSignal.timeout(1) });",
      'export const metadata: Record<string, unknown> | undefined = logs.rows[0]?.metadata;',
      "const page = await client.query('logs.search', { project: 'a', kind: 'auth', cursor: logs.nextCursor });",
      'export const kind: string | undefined = page.rows[0]?.kind;',
      'const [found] = page.rows;',
      "if (found) await client.query('logs.record', { project: 'a', id: found.id, timestamp: found.timestamp });",
      "const errors = await client.query('errors.by-path', { project: 'a', period: 'day' });",
      'export const path: string | null | undefined = errors.rows[0]?.path;',
      `await client.query(${JSON.stringify(evil.name)}, {} as never);`,
    ];
    const start =
      "import { createClient } from 'dendro/client';\nconst client = createClient({ url: '', token: '' });";
    const write = (name: string, lines: readonly string[]) =>
      writeFileSync(join(directory.path, name), `${lines.join('\n')}\n`);
    write('right.mts', [start, ...right]);
    const documented = readFileSync(join(ROOT, 'docs/clients.md'), 'utf8').match(
      /(?<=^```ts\n)[\s\S]*?(?=^```)/gm,
    );
    expect(documented).toHaveLength(2);
    const environment = 'declare const process: { env: Record<string, string | undefined> };';
    write('documented.mts', [environment, ...(documented ?? [])]);
    write('evil.d.ts', [generateTypes([evil], evil.name)]);
    for (const [index, [call]] of WRONG_CALLS.entries())
      write(`wrong-${index}.mts`, [start, `export const x = ${call};`]);
    const messages = compileAll(directory.path);
    expect(messages.filter(line => !line.startsWith('wrong-'))).toEqual([]);
    for (const [index, [call, message]] of WRONG_CALLS.entries())
      expect([call, ...messages.filter(line => line.startsWith(`wrong-${index}.mts`))]).toEqual([
        call,
        expect.stringContaining(message),
      ]);
  });

  test('prints only endpoints that the client does not know', async () => {
    const { stdout } = await runDendro(['types', '--url', app.url, '--token', API_KEY]);
    expect(stdout).toContain("'errors.by-path': {");
    expect(stdout).not.toContain('logs.all');
  });
});

const WRONG_CALLS = [
  ["await client.query('logs.al', { project: 'a' })", '\'"logs.al"\' is not assignable'],
  ["await client.query('logs.all', {})", "'project' is missing"],
  ["await client.query('logs.all', { project: 1 })", "'number' is not assignable to type 'string'"],
  ["await client.query('logs.all', { project: 'a', porject: 'b' })", "'porject' does not exist"],
  [
    "await client.query('usage.api-counts', { project: 'a', interval: '1hr' })",
    '\'"1hr"\' is not assignable',
  ],
  ["await client.query('errors.by-path', { project: 'a', period: 'week' })", '\'"week"\' is not assignable'],
  ["(await client.query('logs.all', { project: 'a' })).rows[0]?.count", "'count' does not exist"],
  ["(await client.query('errors.by-path', { project: 'a' })).rows[0]!.path.length", "is possibly 'null'"],
] as const;

/** Compiles every file of a directory and returns the lines of the compiler that name a file. */
function compileAll(directory: string): string[] {
  const options = { noEmit: true, strict: true, module: 'nodenext', lib: ['es2022', 'dom'], types: [] };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }));
  const { stdout } = spawnSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc')], {
    cwd: directory,
    encoding: 'utf8',
  });
  return stdout.split('\n').filter(line => /^\S/.test(line));
}

/** An entry whose texts would break out of their place in the TypeScript if they were not escaped. */
function createEvilEntry(): CatalogEntry {
  const evil = "*/ } alert('x'); /*\n";
  return {
    id: '0',
    name: `a'\\b${evil}`,
    description: evil,
    max_rows: 1,
    cache: { lifetime_seconds: 0, warming_seconds: null },
    sandboxing: false,
    parameters: [{ name: evil, type: 'choice', required: true, description: evil, choices: [`'; ${evil}`] }],
    columns: [{ name: evil, type: 'text', description: evil }],
  };
}
