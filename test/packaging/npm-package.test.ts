// The npm package: packed, installed into an empty directory and run there.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { createTempDirectory } from '../support/process.ts';
import { checkCoreAcceptance } from './core-acceptance.ts';

const ROOT = join(import.meta.dirname, '../..');
let directory: ReturnType<typeof createTempDirectory>;
let app: string;
let files: string[];

beforeAll(() => {
  directory = createTempDirectory();
  app = join(directory.path, 'app');
  const npm = (...args: string[]) =>
    execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  npm('pack', '--pack-destination', directory.path);
  const [tarball = ''] = readdirSync(directory.path);
  const file = join(directory.path, tarball);
  files = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n');
  process.stdout.write(`npm package: ${statSync(file).size} bytes, ${files.length} files\n`);
  npm('install', '--prefix', app, '--no-audit', '--no-fund', file);
});
afterAll(() => directory?.remove());

test('the package contains the program, its endpoints and the console, and nothing else', () => {
  const expected = [
    /^(LICENSE|README\.md|package\.json|bin\/dendro|bin\/package\.json)$/,
    /^dist\/[\w/-]+\.(js|sql)$/,
    /^dist\/(cli\/endpoint-template\/endpoint|http\/openapi)\.yaml$/,
    /^dist\/store\/migrate\/\w+\.\w+\.sql$/,
    /^dist\/client\/[\w-]+\.d\.ts$/,
    /^dist\/console\/(index\.html|assets\/[\w-]+\.(js|css|svg))(\.gz|\.br)?$/,
    /^(?:endpoints|packs\/explore)\/[a-z.-]+\/(endpoint\.yaml|(explain\.)?(duckdb|clickhouse)\.sql)$/,
  ];
  const names = files.map(file => file.replace(/^package\//, ''));
  expect(names.filter(name => !expected.some(pattern => pattern.test(name)))).toEqual([]);
  expect(names).toEqual(
    expect.arrayContaining([
      'bin/dendro',
      'dist/main.js',
      'dist/client/index.d.ts',
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
    const findUrl = () => /^ {2}(http\S+)\/\?view=/m.exec(output)?.[1];
    await expect.poll(findUrl, { timeout: 100_000 }).toBeDefined();
    expect((await fetchResponse(findUrl() ?? '', {})).text).toContain('<title>');
  } finally {
    process.kill(-(demo.pid ?? 0), 'SIGTERM');
    await ended;
  }
});
