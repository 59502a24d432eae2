// The npm packages: packed, installed into an empty directory and run there.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runNpm } from '../../scripts/npm.mjs';
import { fetchResponse } from '../support/app.ts';
import { createTempDirectory } from '../support/process.ts';
import { checkCoreAcceptance } from './core-acceptance.ts';

const ROOT = join(import.meta.dirname, '../..');
let directory: ReturnType<typeof createTempDirectory>;
let app: string;
let files: string[];
let clientFile: string;
let warnings: string;

beforeAll(() => {
  directory = createTempDirectory();
  app = join(directory.path, 'app');
  // Not `npm run pack`, which builds dist/ again, while other tests use it.
  execFileSync(process.execPath, [join(ROOT, 'scripts/pack.mjs'), directory.path], { stdio: 'pipe' });
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const file = join(directory.path, `dendro-${version}.tgz`);
  clientFile = join(directory.path, `dendro-client-${version}.tgz`);
  files = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n');
  process.stdout.write(`npm package: ${statSync(file).size} bytes, ${files.length} files\n`);
  warnings = runNpm(['install', '--prefix', app, file]);
});
afterAll(() => directory?.remove());

test('the package contains the program, its endpoints, the console and the files of deploy/, and nothing else', () => {
  const expected = [
    /^(LICENSE|README\.md|package\.json|bin\/dendro|bin\/package\.json)$/,
    /^dist\/[\w/-]+\.(js|sql)$/,
    /^dist\/(cli\/endpoint-template\/endpoint|http\/openapi)\.yaml$/,
    /^dist\/store\/migrate\/\w+\.\w+\.sql$/,
    /^dist\/client\/[\w-]+\.d\.ts$/,
    /^dist\/console\/(index\.html|assets\/[\w-]+\.(js|css|svg))(\.gz|\.br)?$/,
    /^deploy\/[\w./-]+$/,
    /^(?:endpoints|packs\/(?:explore|alerts))\/[a-z0-9.-]+\/(endpoint\.yaml|(explain\.)?(duckdb|clickhouse)\.sql)$/,
  ];
  const names = files.map(file => file.replace(/^package\//, ''));
  expect(names.filter(name => !expected.some(pattern => pattern.test(name)))).toEqual([]);
  expect(names).toEqual(
    expect.arrayContaining([
      'bin/dendro',
      'dist/main.js',
      'dist/client/index.d.ts',
      'deploy/systemd/dendro.service',
      'dist/console/index.html',
    ]),
  );
});

test('dendro/client can be imported from the package, and nothing else of it', async () => {
  const run = (code: string) =>
    execFileSync(process.execPath, ['--input-type=module', '-e', code], {
      cwd: app,
      encoding: 'utf8',
      stdio: 'pipe',
    });
  const code = "import { createClient } from 'dendro/client'; console.log(typeof createClient)";
  expect(run(code)).toBe('function\n');
  expect(() => run("import 'dendro/dist/main.js'")).toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/);
});

test('npm has nothing to say about scripts', () => {
  expect(warnings).not.toMatch(/script/);
});

test('the client is a package of its own, without dependencies', () => {
  const consumer = join(directory.path, 'consumer');
  runNpm(['install', '--prefix', consumer, clientFile]);
  expect(readdirSync(join(consumer, 'node_modules')).filter(name => !name.startsWith('.'))).toEqual([
    'dendro-client',
  ]);
  const code = "import { createClient } from 'dendro-client'; console.log(typeof createClient)";
  const args = ['--input-type=module', '-e', code];
  expect(execFileSync(process.execPath, args, { cwd: consumer, encoding: 'utf8' })).toBe('function\n');
  expect(existsSync(join(consumer, 'node_modules/dendro-client/index.d.ts'))).toBe(true);
});

test('the installation has no development dependency', () => {
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const installed = readdirSync(join(app, 'node_modules'));
  expect(installed).toContain('@duckdb');
  expect(Object.keys(devDependencies).filter(name => existsSync(join(app, 'node_modules', name)))).toEqual(
    [],
  );
});

test('dendro serve passes the core acceptance set', async () => {
  await checkCoreAcceptance(join(directory.path, 'data'), {
    cwd: directory.path,
    command: [join(app, 'node_modules', '.bin', 'dendro')],
  });
});

test('npx dendro demo serves the console', async () => {
  // A process group of its own, so that the signal reaches the program below npx.
  const demo = spawn('npx', ['--no-install', 'dendro', 'demo', '--port', '0', '--internal-port', '0'], {
    cwd: app,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(demo, 'exit');
  try {
    let output = '';
    demo.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const findUrl = () => /^ {2}(http\S+)\/\?project=/m.exec(output)?.[1];
    await expect.poll(findUrl, { timeout: 100_000 }).toBeDefined();
    expect((await fetchResponse(findUrl() ?? '', {})).text).toContain('<title>');
  } finally {
    process.kill(-(demo.pid ?? 0), 'SIGTERM');
    await ended;
  }
});
