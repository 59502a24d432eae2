// Writes the npm packages to a directory, by default the current one: dendro, and dendro-client, which is the client alone. Their
// package.json has no scripts and no development dependencies: npm warns about scripts that it does not run.
// Usage: node scripts/pack.mjs [DIRECTORY]
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = join(import.meta.dirname, '..');
const target = resolve(process.argv[2] ?? '.');
const { scripts, devDependencies, overrides, allowScripts, files, ...manifest } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const { version, license, type, engines } = manifest;
pack(manifest, [...files, 'README.md', 'LICENSE'], file => file);
pack(
  {
    ...{ name: 'dendro-client', version, description: 'Client of Dendro for Node and browsers', license },
    ...{ type, engines, exports: { '.': { types: './index.d.ts', default: './index.js' } } },
  },
  ['dist/client', 'LICENSE'],
  file => file.replace('dist/client', ''),
);

/** @param {object} packageJson @param {string[]} paths @param {(path: string) => string} place Where a path is in the package. */
function pack(packageJson, paths, place) {
  const directory = mkdtempSync(join(tmpdir(), 'dendro-pack-'));
  try {
    for (const path of paths) cpSync(join(root, path), join(directory, place(path)), { recursive: true });
    writeFileSync(join(directory, 'package.json'), `${JSON.stringify(packageJson, undefined, 2)}\n`);
    execFileSync('npm', ['pack', '--silent', '--pack-destination', target], {
      cwd: directory,
      stdio: 'inherit',
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
