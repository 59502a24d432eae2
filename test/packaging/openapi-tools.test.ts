// What others do with /openapi.json: check it with linters, generate types from it, and call a server with them.
import { execFileSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runNpm } from '../../scripts/npm.mjs';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, startServer } from '../support/process.ts';

/** package.json and package-lock.json of the tools: 273 packages, which are no dependencies of the project. */
const TOOLS = join(import.meta.dirname, 'openapi-tools');

/** A client as its author would write it. Prints what it got. */
const CLIENT = `
import createClient from 'openapi-fetch';
import type { paths } from './api.d.ts';

const [baseUrl = '', token = '', internalUrl = ''] = process.argv.slice(2);
const headers = { 'X-API-KEY': token };
const { GET, POST } = createClient<paths>({ baseUrl, headers });
const internal = createClient<paths>({ baseUrl: internalUrl, headers });

const sent = await internal.POST('/api/logs', {
  params: { query: { source_name: 'edge' } },
  body: [{ project: 'abc', event_message: 'hello' }],
});
const accepted: number | undefined = sent.data?.accepted;
const byGet = async () => GET('/api/endpoints/query/logs.all', { params: { query: { project: 'abc' } } });
let { data } = await byGet();
for (let attempt = 0; attempt < 200 && data?.result.length === 0; attempt++) {
  await new Promise(resolve => setTimeout(resolve, 100));
  ({ data } = await byGet());
}
const messages: string[] | undefined = data?.result.map(row => row.event_message);
const posted = await POST('/api/endpoints/query/logs.all', { body: { project: 'abc' } });
const ids: string[] | undefined = posted.data?.result.map(row => row.id);
const { error } = await GET('/api/endpoints/query/usage.api-counts', {
  params: { query: { project: '(', interval: 'daily' } },
});
const code: string | undefined = error?.error.code;
console.log(JSON.stringify({ accepted, messages, posted: ids?.length, code, param: error?.error.param }));
`;

const directory = createTempDirectory();
let server: ServerProcess;

const run = (program: string, ...args: string[]) =>
  execFileSync(join(directory.path, 'node_modules/.bin', program), args, {
    cwd: directory.path,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off' },
    encoding: 'utf8',
    stdio: 'pipe',
  });
const write = (file: string, text: string) => writeFileSync(join(directory.path, file), text);

beforeAll(async () => {
  cpSync(TOOLS, directory.path, { recursive: true });
  runNpm(['ci', '--ignore-scripts', '--prefix', directory.path]);
  const args = ['--data', join(directory.path, 'data'), '--packs', 'explore,alerts'];
  server = await startServer(args, { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  const headers = { 'X-API-KEY': PROCESS_API_KEY };
  write('openapi.json', await (await fetch(`${server.url}/openapi.json`, { headers })).text());
});
afterAll(async () => {
  await server?.stop();
  directory.remove();
});

test('the recommended rules of Redocly find nothing', () => {
  const { totals, problems } = JSON.parse(run('redocly', 'lint', '--format=json', 'openapi.json'));
  expect([totals, problems]).toEqual([{ errors: 0, warnings: 0, ignored: 0 }, []]);
});

test('the rules of Spectral for OpenAPI find nothing', () => {
  write('.spectral.yaml', 'extends: ["spectral:oas"]\n');
  const output = run('spectral', 'lint', '--fail-severity=hint', 'openapi.json'); // throws if the exit code is not 0
  expect(output).toContain('No results');
});

test('a client with generated types compiles, and gets rows and errors of these types from a server', () => {
  run('openapi-typescript', 'openapi.json', '-o', 'api.d.ts');
  write('client.mts', CLIENT);
  write(
    'tsconfig.json',
    JSON.stringify({
      compilerOptions: {
        ...{ strict: true, module: 'nodenext', target: 'es2022', lib: ['es2022', 'dom'], types: [] },
        ...{ outDir: 'out', rewriteRelativeImportExtensions: true, skipLibCheck: false },
      },
      files: ['client.mts', 'process.d.ts'],
    }),
  );
  write('process.d.ts', 'declare const process: { argv: string[] };\n');
  run('tsc');
  const args = [join(directory.path, 'out/client.mjs'), server.url, PROCESS_API_KEY, server.internalUrl];
  expect(JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }))).toEqual({
    accepted: 1,
    messages: ['hello'],
    posted: 1,
    code: 'invalid_parameter',
    param: 'project',
  });
}, 600_000); // the compiler reads declarations of several MB
